"""Cache markers."""

from itertools import pairwise

from cases.kit import kit
from cases.registry import check


@check
def markers_max(seen, n):
    for number, body in enumerate(seen.bodies()):
        if len(kit().markers(body)) > n:
            yield f"request {number} has {len(kit().markers(body))} markers"


@check
def markers_min(seen, n, agent=None, where=None):
    """On every request, not only on the last."""
    for number, body in enumerate(seen.bodies(agent)):
        found = [one for one in kit().markers(body) if where in (None, one[0])]
        if len(found) < n:
            yield f"request {number} has {len(found)} markers in {where or 'all'}"


@check
def markers_valid(seen):
    for number, body in enumerate(seen.bodies()):
        for error in kit().marker_errors(body):
            yield f"request {number}: {error}"


@check
def ttl_non_increasing(seen):
    for number, body in enumerate(seen.bodies()):
        ttls = [ttl for _, _, ttl, _ in kit().markers(body)]
        if "5m" in ttls and "1h" in ttls[ttls.index("5m") :]:
            yield f"request {number} has the lifetimes {', '.join(ttls)}"


@check
def ttl_of(seen, value, agent=None):
    """Every marker of the agent's requests, and there are some."""
    found = {ttl for body in seen.bodies(agent) for _, _, ttl, _ in kit().markers(body)}
    if found != {value}:
        yield f"the lifetimes are {sorted(found)}"


@check
def last_marker_in_last_message(seen, agent=None):
    for number, body in enumerate(seen.bodies(agent)):
        last = {"messages": body["messages"][-1:]}
        if not kit().markers(last):
            yield f"request {number} marks nothing in its last message"


@check
def marker_within_lookback(seen, blocks):
    """From the last marker of each request, where its entry was written: a marker before that one
    would always be found, at the header, and would say nothing.
    """
    bodies = seen.bodies()
    for number, (one, other) in enumerate(pairwise(bodies)):
        places = _places(one)
        if places and not any(0 <= place - places[-1] <= blocks for place in _places(other)):
            yield f"request {number} wrote to block {places[-1]}, the next marks {_places(other)}"


def _places(body):
    """Positions of markers, counted over tools, system and messages."""
    system = body.get("system") or ()
    starts = {"tools": 0, "system": len(body.get("tools") or ())}
    starts["messages"] = starts["system"] + (1 if isinstance(system, str) else len(system))
    return [starts[section] + index for section, index, _, _ in kit().markers(body)]
