"""From a request to its prompt: thinking is checked, what is not shown left out, the rest hashed.

What a request shares with the one before it of the same session and model is not hashed again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from barograph.simulator.binding import (
    Chain,
    Thinking,
    check_thinking,
    extend_chain,
    needs_seal,
    seal_reply,
)
from barograph.simulator.blocks import BlockReader
from barograph.simulator.layout import lay_out
from barograph.simulator.prefix import EMPTY_PROMPT, Prompt, extend_prompt
from barograph.simulator.request import Request
from barograph.simulator.switches import Switches


class Prepared(Struct, frozen=True, kw_only=True):
    """A request that may be answered.

    Attributes:
        session: the session it named.
        request: the request.
        betas: names of the betas it asks for.
        prompt: the prompt, block by block.
        thinking: what was decided on thinking that came back.
        total_tokens: the whole prompt.
        chain: keys of what is no thinking; None where no thinking came back.
    """

    session: str
    request: Request
    betas: frozenset[str]
    prompt: Prompt
    thinking: Thinking
    total_tokens: int
    chain: Chain | None = None


class Preparer:
    """Prepares requests, each on the one before it.

    Args:
        switches: how strict the provider is.
        reader: facts of the blocks of an answer.
    """

    def __init__(self, switches: Switches, reader: BlockReader) -> None:
        self._switches = switches
        self._reader = reader
        self._prompts: dict[tuple[str, str], Prompt] = {}
        self._chains: dict[str, Chain] = {}

    def prepare(self, session: str, request: Request, betas: frozenset[str]) -> Prepared:
        """Check the thinking of a request and lay out its prompt.

        Raises:
            Refused: thinking does not fit what precedes it.
        """
        thinking, chain = Thinking(), None
        if any(message.thinking for message in request.messages):
            chain = self._chain(session, request)
            thinking = check_thinking(request, chain, self._switches)
        layout = lay_out(request, thinking.without)
        key = (session, request.model)
        prompt = extend_prompt(
            self._prompts.get(key, EMPTY_PROMPT), request, layout, self._switches
        )
        self._prompts[key] = prompt
        return Prepared(
            session=session,
            request=request,
            betas=betas,
            prompt=prompt,
            thinking=thinking,
            total_tokens=sum(block.tokens for block in prompt.blocks),
            chain=chain,
        )

    def sealed(
        self, prepared: Prepared, blocks: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """The blocks of an answer, thinking that has no signature yet with one."""
        if not needs_seal(blocks):
            return list(blocks)
        request = prepared.request
        chain = prepared.chain or self._chain(prepared.session, request)
        key = chain.key(len(chain.steps))
        return seal_reply(blocks, request.model, key, prepared.thinking.last, self._reader)

    def _chain(self, session: str, request: Request) -> Chain:
        chain = extend_chain(self._chains.get(session, Chain()), request)
        self._chains[session] = chain
        return chain
