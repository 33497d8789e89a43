"""What compactions leave to be seen, and what summaries were made of."""

import json
import re

from barograph.core.events import Compacted
from barograph.core.parts import texts_in
from cases.kit import kit
from cases.properties.contents import texts_of
from cases.properties.outcomes import within
from cases.registry import check

_BASE64 = re.compile(r"[A-Za-z0-9+/]{400}")
_LETTERS = 20  # what is made up in a case repeats a few


@check
def compactions(seen, eq=None, min=None, max=None):  # noqa: A002 - the case's words
    yield from within("compactions", len(_folds(seen)), eq=eq, least=min, most=max)


@check
def summariser_calls(seen, eq=None, min=None, max=None):  # noqa: A002 - the case's words
    yield from within("requests for a summary", len(seen.asked), eq=eq, least=min, most=max)


@check
def summariser_saw(seen, text, call):
    if len(seen.asked) <= call:
        yield f"only {len(seen.asked)} summaries were asked for"
    elif text not in json.dumps(seen.asked[call].request["messages"], ensure_ascii=False):
        yield f"request {call} for a summary does not say {text!r}"


@check
def summariser_text_present(seen, text):
    """In one of the requests for a summary."""
    if not any(text in json.dumps(one.request, ensure_ascii=False) for one in seen.asked):
        yield f"no request for a summary says {text!r}"


@check
def summariser_request_max_tokens(seen, tokens):
    for number, one in enumerate(seen.asked):
        if one.tokens > tokens:
            yield f"request {number} for a summary has {one.tokens} tokens"


@check
def summariser_request_valid(seen):
    """Calls with their results, under the very tools of the agent, and no choice forced."""
    for number, one in enumerate(seen.asked):
        for error in kit().pairing_errors(one.request["messages"], seen.case.form):
            yield f"request {number} for a summary: {error}"
        if one.status == 400 and not one.scripted:
            yield f"request {number} for a summary is refused: {one.response!r}"
        if "tool_choice" in one.request:
            yield f"request {number} for a summary forces a tool"


@check
def summariser_text_absent_base64(seen):
    """No request for a summary has base64 as text; pictures are pictures there too."""
    for number, one in enumerate(seen.asked):
        runs = (run for text in texts_of(one.request) for run in _BASE64.findall(text))
        if any(len(set(run)) > _LETTERS for run in runs):
            yield f"request {number} for a summary has base64 as text"


@check
def no_empty_summary(seen):
    for seq, fold in _folds(seen):
        if not "".join(texts_in(fold.parts)).strip():
            yield f"compaction {seq} leaves nothing"


@check
def surface_never_grows_by_compaction(seen):
    for seq, fold in _folds(seen):
        if fold.tokens_after >= fold.tokens_before:
            yield f"compaction {seq} leads from {fold.tokens_before} to {fold.tokens_after} tokens"


def _folds(seen):
    return [(seq, event) for seq, event in seen.log if isinstance(event, Compacted)]
