"""What of a request is in the prompt, in order: tools, system, messages.

Four things that stand in a request are not, or not where they stand, in the prompt: a turn-scoped
system message that a later user message has cleared, a tool that is loaded only where something
references it, and thinking that was dropped or stripped. Sources: provider pages on system
messages within a conversation (`clear_at`), tool search (`defer_loading`: a referenced tool is
shown where it is referenced) and preserved thinking.
"""

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from barograph.core.events import Level
from barograph.simulator.blocks import BlockFacts
from barograph.simulator.messages import SYSTEM_SALT, TOOL_SALT, Message
from barograph.simulator.request import Request

# Message and block, each by its index.
Place = tuple[int, int]
_NOTHING: Final[frozenset[Place]] = frozenset()


class Layout(Struct, frozen=True, kw_only=True):
    """The blocks of a prompt, and what is hashed for each.

    Attributes:
        facts: facts of each block.
        steps: where each block stands and its digest, in bytes.
        tools: how many of them are tools, which come first.
        system: how many are system blocks, which come next.
    """

    facts: list[BlockFacts]
    steps: list[bytes]
    tools: int
    system: int

    def levels(self) -> list[Level]:
        """The level of each block."""
        levels: list[Level] = ["tools"] * self.tools
        levels += ["system"] * self.system
        levels += ["messages"] * (len(self.facts) - len(levels))
        return levels


def lay_out(request: Request, without: Collection[Place] = _NOTHING) -> Layout:
    """The prompt of a request.

    Args:
        request: the request.
        without: places of thinking blocks that are not shown to the model.
    """
    deferred = {tool.name: tool for tool in request.tools if tool.deferred}
    tools = [tool for tool in request.tools if not tool.deferred] if deferred else request.tools
    facts = [*tools, *request.system]
    steps = [TOOL_SALT + tool.digest for tool in tools]
    steps += [SYSTEM_SALT + block.digest for block in request.system]
    whole = not deferred and not without
    for at, message in _shown(request):
        if whole:
            facts += message.blocks
            steps += message.steps
            continue
        for index, block in enumerate(message.blocks):
            if (at, index) in without:
                continue
            facts.append(block)
            steps.append(message.steps[index])
            for name in block.references:
                tool = deferred.pop(name, None)
                if tool is not None:
                    facts.append(tool)
                    steps.append(TOOL_SALT + tool.digest)
    return Layout(facts=facts, steps=steps, tools=len(tools), system=len(request.system))


def as_sent(request: Request) -> Layout:
    """The request itself, unreferenced tools aside: what is compared for `diagnostics`."""
    tools = [tool for tool in request.tools if not tool.deferred]
    messages = request.messages
    return Layout(
        facts=[*tools, *request.system, *(b for message in messages for b in message.blocks)],
        steps=[
            *(TOOL_SALT + tool.digest for tool in tools),
            *(SYSTEM_SALT + block.digest for block in request.system),
            *(step for message in messages for step in message.steps),
        ],
        tools=len(tools),
        system=len(request.system),
    )


def _shown(request: Request) -> Iterator[tuple[int, Message]]:
    """The messages that the model sees."""
    messages = request.messages
    last_user = max((at for at, one in enumerate(messages) if one.role == "user"), default=-1)
    for at, message in enumerate(messages):
        if not (message.turn_scoped and at < last_user):
            yield at, message
