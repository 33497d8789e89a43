"""What the core must know of a model and of a wire format; both are passed in."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from barograph.core.events import Ttl
from barograph.core.parts import Part, Parts, Role


class ModelFacts(Struct, frozen=True, kw_only=True):
    """Dated facts of one model.

    Attributes:
        name: the family name the facts were looked up by.
        window_tokens: input limit.
        minimum_tokens: smallest cacheable prefix; anything shorter is silently not cached.
        lookback_positions: how many positions, its own included, a breakpoint looks back.
        read_ratio: price of a token read from the cache, relative to plain input.
        write_5m_ratio: price of a token written with the short TTL.
        write_1h_ratio: price of a token written with the long TTL.
        input_usd: list price of a million plain input tokens.
        output_usd: list price of a million output tokens.
        binds_thinking: whether replayed thinking is valid only after an unchanged prefix.
        drops_thinking: whether thinking leaves the prompt once text of the user follows it, and
            not only a tool result; the cache of the messages is lost with it.
        cliff_tokens: input above which each token of the whole request costs more; None where the
            price of a token does not depend on it.
        cliff_ratio: how many times the price above it is that below.
        as_of: ISO date the facts were read on.
    """

    name: str
    window_tokens: int
    minimum_tokens: int
    lookback_positions: int = 20
    read_ratio: float = 0.1
    write_5m_ratio: float = 1.25
    write_1h_ratio: float = 2.0
    input_usd: float
    output_usd: float
    as_of: str
    binds_thinking: bool = False
    drops_thinking: bool = False
    cliff_tokens: int | None = None
    cliff_ratio: float = 1.0

    def price_ratio(self, input_tokens: int) -> float:
        """What a token of a request of that size costs, relative to one of a small request."""
        if self.cliff_tokens is None or input_tokens <= self.cliff_tokens:
            return 1.0
        return self.cliff_ratio


class WireBlock(Struct, frozen=True):
    """One block as a wire format renders it.

    Attributes:
        text: its JSON, without a marker.
        markable: whether it may carry a breakpoint.
    """

    text: str
    markable: bool


class Body(Struct, frozen=True, kw_only=True):
    """A request body taken apart, each piece as the bytes that were sent.

    Attributes:
        order: top-level keys, in the order sent.
        messages: one piece for each wire message.
        system: the system field, or None where the request has none.
        tools: the tools field, or None.
        diagnostics: the field that asks for a comparison with an earlier call, or None.
        parameters: every other field, as one JSON object in the order sent.
    """

    order: tuple[str, ...]
    messages: tuple[bytes, ...]
    system: bytes | None
    tools: bytes | None
    diagnostics: bytes | None = None
    parameters: bytes


class Refreshing(Struct, frozen=True, kw_only=True):
    """The parameters of a request that is repeated for its cache entry alone.

    Attributes:
        parameters: the JSON object, changed only where it asks for an answer.
        dropped: keys that it has no more.
        output_tokens: the most that its answer takes.
    """

    parameters: str
    dropped: tuple[str, ...]
    output_tokens: int


class Scope(Struct, frozen=True):
    """What a cache entry depends on besides the blocks of its prefix.

    `header` covers an entry that ends within tools or system, `messages` one that ends later.
    """

    header: bytes
    messages: bytes


class MarkerFault(Struct, frozen=True):
    """Why a provider refused the markers of a request.

    Attributes:
        excess: markers beyond what it takes; None where it takes none at all.
    """

    excess: int | None


class Codec(Protocol):
    """One wire format: pure functions between parts and bytes."""

    @property
    def renderer(self) -> str:
        """Name and version of the rendering; part of every request record."""
        ...

    def facts_of(self, model: str) -> ModelFacts:
        """Limits, minimums and ratios of a model id."""
        ...

    def sendable(self, parts: Parts, *, prefill: bool = False) -> Parts:
        """The parts that may be sent: what the wire format refuses to carry is left out.

        `prefill` says that they are an assistant message that ends the request.
        """
        ...

    def block(self, part: Part) -> WireBlock:
        """One sendable part as one wire block."""
        ...

    def weigh(self, part: Part) -> int:
        """What a part weighs, in characters of text: pictures and documents by their size."""
        ...

    def render_message(self, role: Role, blocks: Sequence[str], marks: Mapping[int, Ttl]) -> bytes:
        """A wire message; `marks` maps a block's index within the message to a TTL."""
        ...

    def render_system(self, system: Parts, marks: Mapping[int, Ttl]) -> bytes | None:
        """The system field, or None where there is nothing to send."""
        ...

    def render_tools(self, tools: str, marks: Mapping[int, Ttl]) -> bytes | None:
        """The tools field from its JSON array, or None where there are no tools."""
        ...

    def render_diagnostics(self, compared_with: str | None) -> bytes:
        """The field that asks for a comparison with the call of that answer; None for the first."""
        ...

    def split_body(self, body: bytes) -> Body | None:
        """Take a body apart, or None where joining the pieces would not give it back."""
        ...

    def join_body(self, body: Body) -> bytes:
        """Put a body together again."""
        ...

    def unmarked_tools(self, tools: bytes) -> str:
        """The tools field as sent, without markers: the JSON array that `render_tools` takes."""
        ...

    def refreshing(self, parameters: str) -> Refreshing:
        """What to send in the place of these parameters where no answer is wanted.

        Nothing that a cache entry depends on is changed.
        """
        ...

    def marker_fault(self, status: int | None, message: str) -> MarkerFault | None:
        """What an error says of the markers; None where it is about something else."""
        ...

    def scope_of(self, system: Parts, tools: str, parameters: str) -> Scope:
        """What cache entries under this header depend on."""
        ...
