"""What a compaction keeps for later, in which order, and who is told where that fails."""

from barograph.audit.reading import RECOVERED
from barograph.core.canonical import clean_text
from barograph.core.events import ArchiveMissed, AttemptFailed, Compacted, MessageSeen, Pruned
from barograph.core.learning import learn, restore
from barograph.core.state import State
from barograph.providers.anthropic.codec import AnthropicCodec
from cases.properties.contents import archived, words_of
from cases.properties.outcomes import within
from cases.registry import UnknownWordError, check

_MOMENTS = {
    "archive": {"archive", "archived"},
    "summarise": {"summarise", "summary", "summariser"},
    "compact": {"compact", "compaction", "fold", "replace", "rewrite", "switch"},
}


@check
def archive_roundtrip(seen):
    """All that was said is in the last request, or comes back whole from the archive."""
    if not _hidden(seen):
        yield "nothing was hidden"
    shown, kept = words_of(seen.pick(-1)[0][1]), archived(seen).values()
    for _, text in seen.accepted:
        said = clean_text(text)
        if said not in shown and not any(said in one for one in kept):
            yield f"neither the last request nor the archive says {text[:40]!r}"


@check
def archives_distinct(seen, min):  # noqa: A002 - the case's word
    """Compactions of which each hides messages of its own, all of them in the archive."""
    kept = archived(seen)
    found = {
        event.shadows
        for _, event in seen.log
        if isinstance(event, Compacted) and any(seq in kept for seq in event.shadows)
    }
    yield from within("archives", len(found), least=min)


@check
def coverage_complete(seen):
    """Each message is in the surface, or behind a summary that is: a digest is made of all."""
    entries = list(_restored(seen.log).surface("main").entries)
    told_of = {seq for entry in entries for seq in (entry.seq, *entry.hides)}
    for seq, event in seen.log:
        if isinstance(event, MessageSeen) and event.path == "main" and seq not in told_of:
            yield f"message {seq} is neither shown nor summed up"


@check
def order(seen, sequence):
    """What a compaction does, each thing after the one that the case names before it."""
    moments = iter(seen.moments)
    for word in sequence:
        meant = [moment for moment, words in _MOMENTS.items() if word in words]
        if not meant:
            raise UnknownWordError(f"a moment called {word!r}")
        if meant[0] not in moments:
            yield f"{word} does not come after what must precede it: {seen.moments}"


@check
def surface_smaller_than_before(seen):
    """What the log shows the model, before the first relief and after the last one."""
    state, sizes, size = State(), [], 0
    for seq, event in seen.log:
        before, state = size, learn(AnthropicCodec(), state, seq, event)
        segments = state.surface("main").segments
        size = segments[-1].end_chars if len(segments) else 0
        if isinstance(event, Compacted | Pruned) and event.path == "main":
            sizes.append((before, size))
    if not sizes or sizes[-1][1] >= sizes[0][0]:
        yield f"sizes before and after each relief: {sizes}"


@check
def surface_contains_one_of(seen, texts, otherwise=None):
    """In the last request; `otherwise` names what is as good."""
    said = words_of(seen.pick(-1)[0][1])
    if any(text in said for text in texts):
        return
    if otherwise == "no_compaction":
        yield from within("compactions", len(_hidden(seen)), eq=0)
    elif otherwise in ("archive", "archived"):
        if not any(text in one for text in texts for one in archived(seen).values()):
            yield f"neither the last request nor the archive says one of {texts}"
    elif otherwise is not None:
        raise UnknownWordError(f"otherwise {otherwise!r}")
    else:
        yield f"the last request says none of {texts}"


@check
def summary_max_chars(seen, chars):
    for seq, event in seen.log:
        if isinstance(event, Compacted) and sum(len(part.text) for part in event.parts) > chars:
            yield f"compaction {seq} leaves more than {chars} characters"


@check
def auto(seen, compactions=None, log_level=None, metric=None):
    """Of the path that nobody asked for."""
    log = seen.value("auto_log")
    folds = [event for _, event in log if isinstance(event, Compacted)]
    yield from within("automatic compactions", len(folds), eq=compactions)
    if log_level is not None and not any(one.startswith(log_level) for one in seen.said):
        yield f"nothing was said as {log_level}: {seen.said}"
    if metric is not None:
        yield from within(metric, counted(metric, log), least=1)


@check
def manual(seen, compactions=None, refused=None, surface_unchanged=None, summariser_calls=None):
    """Of a compaction that somebody asks for."""
    found = seen.value("manual")
    for name, wanted in (
        ("compactions", compactions),
        ("refused", refused),
        ("surface_unchanged", surface_unchanged),
        ("summariser_calls", summariser_calls),
    ):
        if wanted is not None and found[name] != wanted:
            yield f"{name} of the manual path: {found[name]}, not {wanted}"


def _hidden(seen):
    return [event for _, event in seen.log if isinstance(event, Compacted)]


def _restored(log):
    return restore(AnthropicCodec(respell_arguments=True), log)


@check
def metric(seen, name, eq=None, min=None):  # noqa: A002 - the case's word
    """A number that the product counts, from the log."""
    yield from within(name, counted(name, seen.log), eq=eq, least=min)


def counted(name, log):
    """One of the product's numbers; recoveries are those that were attempted."""
    events = [event for _, event in log]
    if name == "archive_failures":
        return sum(isinstance(event, ArchiveMissed) for event in events)
    if name == "summary_failures":
        return sum(len(event.failures) for event in events if isinstance(event, Compacted))
    if name in ("overflow_recoveries", "recoveries"):
        retried = [event for event in events if isinstance(event, AttemptFailed)]
        return sum(event.cause in RECOVERED for event in retried)
    raise UnknownWordError(f"metric {name!r}")
