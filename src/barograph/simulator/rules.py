"""What the provider refuses with a 400, in its words.

Sources: the provider's messages API reference (fields, pairing of tool calls and results), its
prompt-caching page (markers) and its errors page (length). Nothing here changes any state.
"""

from typing import Final

from barograph.core.model import ModelFacts
from barograph.simulator.abilities import stops_at_window
from barograph.simulator.blocks import BlockFacts
from barograph.simulator.faulty import overflow, too_large
from barograph.simulator.messages import Message
from barograph.simulator.refusal import Refused
from barograph.simulator.request import Request

MOST_MARKERS: Final = 4
MOST_BYTES: Final = 32 * 1024 * 1024


def too_many_markers(found: int) -> Refused:
    """The provider's refusal of more markers than it takes."""
    return Refused(
        f"A maximum of {MOST_MARKERS} blocks with cache_control may be provided. Found {found}."
    )


def check_size(body: bytes) -> None:
    """Refuse a body that is larger than the provider takes.

    Raises:
        Refused: with a 413.
    """
    if len(body) > MOST_BYTES:
        raise too_large()


def check_request(request: Request) -> None:
    """Refuse a request that the provider would refuse whatever its model.

    Raises:
        Refused: with the provider's message.
    """
    _check_blocks(request)
    _check_messages(request.messages)
    _check_pairs(request.messages)
    _check_markers(request)
    _check_tools(request)
    if request.max_tokens == 0:
        _check_prewarm(request)


def check_window(request: Request, total_tokens: int, facts: ModelFacts) -> None:
    """Refuse a prompt that is longer than the model's window, or leaves too little of it.

    Raises:
        Refused: with the provider's message for it.
    """
    window, most = facts.window_tokens, request.max_tokens
    figures = {"total": total_tokens, "most": most, "window": window}
    wording = ""
    if total_tokens > window:
        wording = "prompt_too_long"
    elif total_tokens + most > window and not stops_at_window(request.model):
        wording = "input_and_max_tokens"
    refusal = overflow(wording, **figures) if wording else None
    if refusal is not None:
        raise refusal


def _check_blocks(request: Request) -> None:
    _check_row("tools", request.tools)
    _check_row("system", request.system)
    for index, message in enumerate(request.messages):
        if message.faulty >= 0:
            _check_row(f"messages.{index}.content", message.blocks)


def _check_row(path: str, blocks: tuple[BlockFacts, ...]) -> None:
    for index, block in enumerate(blocks):
        if not block.problem:
            continue
        if block.problem.startswith(": text content"):
            raise Refused(f"{path.removesuffix('.content')}{block.problem}")
        raise Refused(f"{path}.{index}{block.problem}")


def _check_messages(messages: tuple[Message, ...]) -> None:
    if not messages:
        raise Refused("messages: at least one message is required")
    if messages[0].role != "user":
        raise Refused('messages: first message must use the "user" role')
    for index, message in enumerate(messages):
        last_assistant = index == len(messages) - 1 and message.role == "assistant"
        if not message.blocks and not last_assistant:
            raise Refused(
                f"messages.{index}: all messages must have non-empty content except for the"
                " optional final assistant message"
            )


def _check_markers(request: Request) -> None:
    blocks = request.blocks()
    markers = [block.marker for block in blocks if block.marker is not None]
    automatic = request.automatic
    if automatic is not None:
        _check_automatic(request, blocks)
        already = next((block.marker for block in reversed(blocks) if block.eligible), None)
        markers += [] if already is not None and len(markers) < MOST_MARKERS else [automatic]
    if len(markers) > MOST_MARKERS:
        raise too_many_markers(len(markers))
    first_short = markers.index("5m") if "5m" in markers else len(markers)
    if "1h" in markers[first_short:]:
        raise Refused(
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'"
            " cache_control block. Note that blocks are processed in the following order:"
            " `tools`, `system`, `messages`."
        )


def _check_tools(request: Request) -> None:
    """reference: provider tool-search page; something must be loaded from the start."""
    if request.tools and all(tool.deferred for tool in request.tools):
        raise Refused("tools: at least one tool must have defer_loading=false")


def _check_automatic(request: Request, blocks: list[BlockFacts]) -> None:
    """An automatic marker may repeat the last eligible block's own marker, not contradict it."""
    last = next((block for block in reversed(blocks) if block.eligible), None)
    if last is not None and last.marker not in (None, request.automatic):
        raise Refused(
            f"cache_control: the last cacheable block already has ttl='{last.marker}', the"
            f" request asks for ttl='{request.automatic}'"
        )


def _check_prewarm(request: Request) -> None:
    """reference: provider prompt-caching page, pre-warming with `max_tokens: 0`."""
    parameters = request.parameters
    conflicts = {
        "stream": request.stream,
        "tool_choice": parameters.tool_choice.get("type") in ("any", "tool"),
        "output_config.format": parameters.structured_output,
        "thinking": parameters.thinking.get("type") == "enabled",
    }
    for name, present in conflicts.items():
        if present:
            raise Refused(f"max_tokens: 0 cannot be combined with `{name}`")


def _turns(messages: tuple[Message, ...]) -> list[tuple[int, Message]]:
    """Messages with consecutive ones of one role combined, each with its first index.

    A system message between two others ends no turn.
    """
    turns: list[tuple[int, Message]] = []
    for index, message in enumerate(messages):
        if turns and turns[-1][1].role == message.role:
            turns[-1] = (turns[-1][0], _combined(turns[-1][1], message))
        elif message.role != "system":
            turns.append((index, message))
    return turns


def _combined(first: Message, second: Message) -> Message:
    return Message(
        role=first.role,
        blocks=first.blocks + second.blocks,
        calls=first.calls + second.calls,
        answers=first.answers + second.answers,
        faulty=max(first.faulty, second.faulty),
        steps=(),
    )


def _check_pairs(messages: tuple[Message, ...]) -> None:
    asked: tuple[str, ...] = ()
    asked_at = 0
    seen: set[str] = set()
    for index, message in _turns(messages):
        if message.role == "user":
            if asked or message.answers:
                _check_answers(index, message, asked, asked_at)
            asked = ()
            continue
        asked, asked_at = message.calls, index
        if not seen.isdisjoint(asked) or len(set(asked)) < len(asked):
            raise Refused(f"messages.{index}: `tool_use` ids must be unique")
        seen.update(asked)
    if asked:
        raise _unanswered(asked_at, asked)


def _check_answers(index: int, message: Message, asked: tuple[str, ...], asked_at: int) -> None:
    """The results of one user turn against the calls of the assistant turn before it."""
    answered: set[str] = set()
    for position, block in enumerate(message.blocks):
        if block.kind != "tool_result":
            continue
        if block.tool_id not in asked:
            raise Refused(
                f"messages.{index}.content.{position}: unexpected `tool_use_id` found in"
                f" `tool_result` blocks: {block.tool_id}. Each `tool_result` block must have a"
                " corresponding `tool_use` block in the previous message."
            )
        if block.tool_id in answered:
            raise Refused(
                f"messages.{index}.content.{position}: each tool_use must have a single result."
                f" Found multiple `tool_result` blocks with id: {block.tool_id}"
            )
        if position > len(answered):
            raise Refused(
                f"messages.{index}.content.{position}: `tool_result` blocks must come before any"
                " other content of their user message"
            )
        answered.add(block.tool_id)
    missing = tuple(call for call in asked if call not in answered)
    if missing:
        raise _unanswered(asked_at, missing)


def _unanswered(index: int, calls: tuple[str, ...]) -> Refused:
    return Refused(
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately"
        f" after: {', '.join(calls)}. Each `tool_use` block must have a corresponding"
        " `tool_result` block in the next message."
    )
