"""Scripted models: what the simulator answers, by session and index."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from barograph.simulator.refusal import NOT_FOUND, Refused
from barograph.simulator.tokens import TokenRule, size_of_block

DEFAULT_SESSION = "default"


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of a scripted model.

    Attributes:
        content: blocks in wire form, sent as they are; a string stands for one text block. A call
            whose input is a string is streamed with these very arguments: they may be cut off.
        stop_reason: as on the wire; by default `tool_use` if a block is one, else `end_turn`.
        output_tokens: tokens billed for it; counted by the simulator's rule if None.
    """

    content: Sequence[Mapping[str, Any]] | str
    stop_reason: str | None = None
    output_tokens: int | None = None

    def blocks(self) -> list[Mapping[str, Any]]:
        """The content as blocks."""
        if isinstance(self.content, str):
            return [{"type": "text", "text": self.content}]
        return list(self.content)

    def reason(self) -> str:
        """The stop reason that is sent."""
        if self.stop_reason is not None:
            return self.stop_reason
        calls = any(block.get("type") == "tool_use" for block in self.blocks())
        return "tool_use" if calls else "end_turn"

    def tokens(self, rule: TokenRule) -> int:
        """Tokens billed for it."""
        if self.output_tokens is not None:
            return self.output_tokens
        return sum(rule.tokens_of(size_of_block(block)) for block in self.blocks())

    def stopped_at(self, room_tokens: int, rule: TokenRule) -> "Reply":
        """What is left of it where the model's window leaves room for so many tokens.

        Whole blocks that fit stay, and of the first that does not a text keeps its beginning.
        """
        kept: list[Mapping[str, Any]] = []
        left = room_tokens
        for block in self.blocks():
            tokens = rule.tokens_of(size_of_block(block))
            if tokens <= left:
                kept.append(block)
                left -= tokens
                continue
            text = str(block["text"]) if block.get("type") == "text" else ""
            if beginning := text[: len(text) * left // tokens].rstrip():
                kept.append({**block, "text": beginning})
            break
        return Reply(
            content=kept, stop_reason="model_context_window_exceeded", output_tokens=room_tokens
        )


# The decoded request and the index of the reply, from 0; None says that the script is over.
ScriptFunction: TypeAlias = Callable[[dict[str, Any], int], Reply | None]
Script: TypeAlias = Sequence[Reply] | ScriptFunction


class Stage:
    """The scripts of all sessions, and how far each one is.

    A first try is for the reply after the last one that was delivered. A retry is for the reply of
    the try before it, so a client that lost an answer gets the same one again.
    """

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}
        self._next: dict[str, int] = {}
        self._tried: dict[str, int] = {}

    @property
    def sessions(self) -> list[str]:
        """Names of the sessions that have a script, sorted."""
        return sorted(self._scripts)

    def play(self, session: str, script: Script) -> None:
        """Register the script of a session, from its beginning."""
        self._scripts[session] = script
        self._next[session] = 0
        self._tried[session] = 0

    def index_of(self, session: str, *, attempt: int, pinned: int | None) -> int:
        """Index of the reply that a request is for.

        Args:
            session: the session it named.
            attempt: the client's retry count.
            pinned: an index that the request asks for; it leaves the session where it is.

        Raises:
            Refused: no session of that name plays.
        """
        if session not in self._scripts:
            known = ", ".join(self.sessions) or "none"
            raise Refused(
                f"session '{session}' has no script; known sessions: {known}",
                status=404,
                kind=NOT_FOUND,
            )
        if pinned is not None:
            return pinned
        index = self._tried[session] if attempt > 0 else self._next[session]
        self._tried[session] = index
        return index

    def reply(self, session: str, index: int, body: bytes) -> Reply:
        """The reply of a session at an index.

        Args:
            session: a session that plays.
            index: from 0.
            body: the request, decoded only for a script that is a function.

        Raises:
            Refused: the script is over, or its function failed.
        """
        script = self._scripts[session]
        reply: Reply | None
        if callable(script):
            try:
                reply = script(msgspec.json.decode(body), index)
            except Exception as error:  # the caller's code; its failure must reach the client
                raise Refused(
                    f"the script of session '{session}' failed at index {index}: {error!r}"
                ) from error
        else:
            reply = script[index] if 0 <= index < len(script) else None
        if reply is None:
            raise Refused(f"the script of session '{session}' ran out: no reply at index {index}")
        return reply

    def delivered(self, session: str, index: int, *, pinned: bool) -> None:
        """Go on to the reply after this one, unless the request pinned its index."""
        if not pinned:
            self._next[session] = index + 1
