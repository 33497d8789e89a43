"""Write down what leaves: the header in force, and the request record."""

import json

from barograph.core.canonical import canonical_json, digest, hash_body
from barograph.core.errors import SurfaceError
from barograph.core.events import Deviation, HeaderSet, RequestSent
from barograph.core.inputs import BodyLeft
from barograph.core.model import Body, Codec
from barograph.core.record import Comparison, Departing, compare_body
from barograph.core.surface import Surface
from barograph.core.work import Work


def record_body(work: Work, given: BodyLeft) -> None:
    """Log the header if it changed, and the request record."""
    codec, name = work.codec, given.path
    body = given.apart or codec.split_body(given.body)
    if body is not None:
        header = _header_event(codec, work.state.surface(name), given, body)
        if header is not None:
            work.log(header)
    path, surface = work.state.path(name), work.state.surface(name)
    plan = path.planned
    if plan is None:
        raise SurfaceError(
            f"A body left for {name}, which never planned a call.",
            next_step="An adapter must want a call before it reports on it; this is its defect.",
            path=name,
        )
    if body is None:
        whole = Deviation(where="body", text=given.body.decode("latin-1"))
        found = Comparison((whole,), ("body",))
    else:
        departing = Departing(
            path=path,
            surface=surface,
            plan=plan,
            body=body,
            before=given.before,
        )
        found = compare_body(codec, departing)
    work.log(
        RequestSent(
            at=given.at,
            path=name,
            call=plan.call,
            attempt=path.attempt + 1,
            header=surface.header_seq,
            renderer=codec.renderer,
            order=body.order if body else (),
            messages=len(body.messages) if body else 0,
            deviations=found.deviations,
            mismatches=found.mismatches,
            body_hash=hash_body(given.body),
            body_bytes=len(given.body),
            observed=given.observed,
        )
    )


def _header_event(codec: Codec, surface: Surface, given: BodyLeft, body: Body) -> HeaderSet | None:
    """The header that is in force from this request on, if it differs from the one before.

    System and tools are ours to derive: the ones that were wanted. Where other tools left (a
    client adds some for structured output) they are adopted as sent, and said to be.
    """
    wanted, before = given.header, surface.header
    tools = codec.unmarked_tools(body.tools) if body.tools else ""
    is_ours = same_json(tools, wanted.tools)
    parameters = body.parameters.decode()
    fields: dict[str, object] = {
        "model": wanted.model,
        "system": wanted.system,
        "tools": tools,
        "parameters": parameters,
    }
    changed = tuple(
        key for key, value in fields.items() if before is None or getattr(before, key) != value
    )
    if not changed:
        return None
    return HeaderSet(
        at=given.at,
        path=given.path,
        model=wanted.model,
        system=wanted.system,
        tools=tools,
        parameters=parameters,
        changed=changed,
        adopted=() if is_ours else ("tools",),
        wanted="" if is_ours else _digest_of(wanted.tools),
    )


def asks_for_tools(sent: HeaderSet, tools: str) -> bool:
    """Whether a header in force is what comes of wanting these tools, whatever a client added."""
    if sent.adopted and sent.wanted == _digest_of(tools):
        return True
    return same_json(sent.tools, tools)


def _digest_of(tools: str) -> str:
    return digest(tools.encode()).hex()


def same_json(one: str, other: str) -> bool:
    """Whether two JSON texts mean the same; an empty text means an empty list."""
    if one == other:
        return True
    if not one or not other:
        return (one or "[]") == (other or "[]")
    return canonical_json(json.loads(one)) == canonical_json(json.loads(other))
