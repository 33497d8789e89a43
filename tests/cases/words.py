"""Which words of a case are known: those that are played, and those that are waited for."""

from cases import not_yet
from cases.registry import OPS, PROPERTIES, Adapter, UnknownWordError


def check_vocabulary(case):
    """Fail on every word that nobody here knows."""
    waited = {word.partition(":")[0] for one in not_yet.NOT_YET for word in one.properties}
    unknown = [p["prop"] for p in case.properties if p["prop"] not in PROPERTIES.keys() | waited]
    unknown += [word for word in case.words() if not is_known(case.op, word)]
    if unknown:
        raise UnknownWordError(f"{case.id} uses {', '.join(sorted(unknown))}")


def is_known(op, word):
    """Whether an op understands an input or setting, or waits for a capability that will."""
    kind, _, name = word.partition(":")
    known_by = OPS.get(op, Adapter(None))
    known = {
        "op": name in OPS,
        "form": name in known_by.forms,
        "input": name in known_by.takes,
        "setting": name in known_by.settings,
        "usage": name in ("anthropic", "langchain"),
    }
    is_waited = word in not_yet.known_words()
    return known[kind] or is_waited or not_yet.blocking({f"op:{op}"}) != []
