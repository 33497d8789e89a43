"""What is refused by the model or by a switch, not by the request alone.

Sources: provider page on system messages within a conversation (models, places, `clear_at` and its
beta header), and gateways that know no markers. What is demanded of subscription accounts is not
documented: it was seen, and the refusal says no more than this one does.
"""

from typing import Final

from barograph.simulator.abilities import takes_system_messages
from barograph.simulator.binding import check_controls
from barograph.simulator.blocks import BlockReader
from barograph.simulator.messages import Message
from barograph.simulator.refusal import Refused
from barograph.simulator.request import Request
from barograph.simulator.rules import MOST_MARKERS, too_many_markers
from barograph.simulator.switches import Switches
from barograph.simulator.tokens import TokenRule

CLEAR_AT_BETA: Final = "mid-conversation-system-clear-at-2026-08-21"
_SYSTEM_KINDS: Final = frozenset({"text", "tool_addition", "tool_removal"})


def check_strictly(request: Request, betas: frozenset[str], switches: Switches) -> None:
    """Refuse what this model, these beta headers or these switches do not allow.

    Raises:
        Refused: with the provider's message, or a gateway's.
    """
    check_controls(request, betas)
    if switches.identity is not None:
        _check_identity(request, switches.identity)
    if switches.markers == "unsupported":
        _check_no_markers(request)
    if switches.markers == "one_taken":
        _check_room_for_one(request)
    for at, message in enumerate(request.messages):
        if message.clear_at and message.role != "system":
            raise Refused(f"messages.{at}.clear_at: only permitted on `system` messages")
        if message.role == "system":
            _check_system_message(request, at, message, betas)
            if switches.system_placement == "after_user":
                _check_place(request, at)


def betas_of(header: str) -> frozenset[str]:
    """The names in an `anthropic-beta` header."""
    return frozenset(name.strip() for name in header.split(",") if name.strip())


def _check_identity(request: Request, identity: str) -> None:
    first = request.system[0] if request.system else None
    wanted = BlockReader(TokenRule()).text(identity)
    if first is None or first.digest != wanted.digest or first.marker is not None:
        raise Refused("Error", status=429, kind="rate_limit_error")


def _check_system_message(
    request: Request, at: int, message: Message, betas: frozenset[str]
) -> None:
    if not takes_system_messages(request.model):
        raise Refused(f"messages.{at}.role: `system` is not supported on {request.model}")
    if message.clear_at and CLEAR_AT_BETA not in betas:
        raise Refused(
            f"messages.{at}.clear_at: Extra inputs are not permitted without the header"
            f" `anthropic-beta: {CLEAR_AT_BETA}`"
        )
    for index, block in enumerate(message.blocks):
        path = f"messages.{at}.content.{index}"
        if block.kind not in _SYSTEM_KINDS:
            raise Refused(f"{path}: `{block.kind}` blocks are not permitted in system messages")
        if message.turn_scoped and block.marker is not None:
            raise Refused(f"{path}.cache_control: not permitted on turn-scoped system messages")


def _check_place(request: Request, at: int) -> None:
    """After a user message; then the end or an assistant message."""
    before, after = at - 1, at + 1
    messages = request.messages
    while messages[before].role == "system":  # the first message is no system message
        before -= 1
    while after < len(messages) and messages[after].role == "system":
        after += 1
    if messages[before].role != "user" and not _ends_in_server_tool(messages[before]):
        raise Refused(f"messages.{at}: a `system` message must follow a `user` message")
    if after < len(messages) and messages[after].role != "assistant":
        raise Refused(
            f"messages.{at}: a `system` message must be the last message or be followed by an"
            " `assistant` message"
        )


def _ends_in_server_tool(message: Message) -> bool:
    return bool(message.blocks) and message.blocks[-1].kind == "server_tool_use"


def _check_room_for_one(request: Request) -> None:
    markers = sum(block.marker is not None for block in request.blocks())
    found = markers + (request.automatic is not None) + 1
    if found > MOST_MARKERS:
        raise too_many_markers(found)


def _check_no_markers(request: Request) -> None:
    rows = [("tools", request.tools), ("system", request.system)]
    rows += [(f"messages.{at}.content", one.blocks) for at, one in enumerate(request.messages)]
    for path, blocks in rows:
        for index, block in enumerate(blocks):
            if block.marker is not None:
                raise Refused(f"{path}.{index}.cache_control: Extra inputs are not permitted")
    if request.automatic is not None:
        raise Refused("cache_control: Extra inputs are not permitted")
