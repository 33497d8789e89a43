"""What agents of one session share: tools and system, and whether a cache holds them already.

Agents with the same tools and system read one cache entry, the one at the end of both. An entry can
be read once the response to a request that writes it begins (prompt-caching page), so of several
that leave at once on a cold cache each one writes it. Here is only said what would be written; who
waits for whom is the adapter's.
"""

from barograph.core.breakpoints import SLOTS
from barograph.core.canonical import digest
from barograph.core.inputs import CallWanted
from barograph.core.model import Codec
from barograph.core.outgoing import asks_for_tools
from barograph.core.policy import Policy
from barograph.core.pressure import ratio_of
from barograph.core.recovery import resting_slots
from barograph.core.state import State, count_header_chars

_MARKED_FIRST = 2
"""Slots that come before the one at the end of tools + system: the tail and the anchor."""


def cold_prefix(state: State, codec: Codec, policy: Policy, wanted: CallWanted) -> bytes | None:
    """A key of the tools + system that this call would be the first to write.

    None where it writes none: they are too short for the model, no marker is free for them, or
    some agent of the session wrote or read them so lately that they are still there. And where the
    policy is not to wait, nobody needs to know.
    """
    header = wanted.header
    if not policy.fanout_wait_seconds or not (header.system or header.tools):
        return None
    if SLOTS - wanted.reserved - resting_slots(state, wanted, policy) <= _MARKED_FIRST:
        return None
    # the cheapest first: the agent's own path holds it nearly always
    if _holds(state, wanted.path, wanted):
        return None
    start = policy.of(header.model).start_tokens_per_char
    ratio = ratio_of(state.factors, header.model, start)
    tokens = count_header_chars(codec, header.system, header.tools) * ratio
    if tokens < codec.facts_of(header.model).minimum_tokens:
        return None
    if any(_holds(state, name, wanted) for name in state.paths):
        return None
    system = codec.render_system(header.system, {}) or b""
    return digest(header.model.encode(), header.tools.encode(), system)


def _holds(state: State, name: str, wanted: CallWanted) -> bool:
    """Whether this path used a live entry for the tools + system that are wanted."""
    sent, path = state.surface(name).header, state.path(name)
    if sent is None or (sent.model, sent.system) != (wanted.header.model, wanted.header.system):
        return False
    if not asks_for_tools(sent, wanted.header.tools):
        return False
    recent = path.ledger.span(max(0, len(path.ledger) - SLOTS))
    return any(
        entry.level == "header" and entry.scope == path.scope.header and entry.is_live(wanted.at)
        for entry in recent
    )
