"""What an adapter tells the engine. Times are seconds since the epoch, on the adapter's clock."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from barograph.core.events import Mode, Ttl, Usage
from barograph.core.frames import Offer
from barograph.core.ingest import Incoming
from barograph.core.model import Body
from barograph.core.parts import Parts


class SessionStarted(Struct, frozen=True, kw_only=True):
    """A new session. `made_by` names the writer and its version, `mode` the kind of run."""

    at: float
    session: str
    made_by: str
    mode: Mode = "normal"


class Header(Struct, frozen=True, kw_only=True):
    """What the adapter knows will precede the messages. `tools` is a JSON array."""

    model: str
    system: Parts = ()
    tools: str = ""


class Summariser(Struct, frozen=True, kw_only=True):
    """A model of its own for summaries: its id, its window where known, and room for its answer."""

    model: str
    window_tokens: int | None = None
    reserve_tokens: int = 0


class CallWanted(Struct, frozen=True, kw_only=True):
    """A model call is about to be made.

    Attributes:
        messages: the caller's history, from where `known` ends.
        known: how much of the history the adapter vouches for, in units: the `seen` of the last
            `Send` if the history begins with the very messages of that call, else 0.
        reserved: breakpoint slots that somebody else will use.
        reserved_ttl: lifetime of the marker among them that stands at the end; None for none.
        foreign: markers of the caller that were taken off.
        diagnosable: whether the provider is one that compares requests when asked to.
        reserve_tokens: room that the answer may take.
        window_tokens: what the model takes, where the adapter knows better than the table.
        summarises: whether the adapter can send one more call, to ask for a summary.
        summariser: the model that is asked then; None for the agent's own.
        folds: whether anything may be folded for it; not while the log cannot be written.
        frame: what the sources offer for a turn that begins with this call; None where they were
            not asked.
    """

    at: float
    path: str
    header: Header
    messages: tuple[Incoming, ...]
    known: int = 0
    reserved: int = 0
    reserved_ttl: Ttl | None = None
    foreign: int = 0
    diagnosable: bool = False
    reserve_tokens: int = 0
    window_tokens: int | None = None
    summarises: bool = False
    summariser: Summariser | None = None
    folds: bool = True
    frame: Offer | None = None


class CompactWanted(Struct, frozen=True, kw_only=True):
    """Somebody asks for a compaction now; `wanted` is the call as it would be made."""

    wanted: CallWanted

    @property
    def path(self) -> str:
        """Agent path that is to be compacted."""
        return self.wanted.path


class PruneWanted(Struct, frozen=True, kw_only=True):
    """Somebody asks for a pass now; `wanted` is the call as it would be made."""

    wanted: CallWanted

    @property
    def path(self) -> str:
        """Agent path that is to be pruned."""
        return self.wanted.path


class WarmWanted(Struct, frozen=True, kw_only=True):
    """It may be time to repeat the last request of a path, so that its cache entry lives on.

    `call` is the number of the call that it belongs to: after a newer one there is nothing to do.
    """

    at: float
    path: str
    call: int


class PinWanted(Struct, frozen=True, kw_only=True):
    """Somebody wants a message kept whatever is folded, or lets it go."""

    at: float
    message: int
    holds: bool = True


class BodyLeft(Struct, frozen=True, kw_only=True):
    """A request body is about to leave.

    Attributes:
        header: the header that was wanted for this call.
        body: the bytes.
        apart: the same taken apart, where somebody has done so; else it is done here.
        observed: whether the HTTP layer showed them to us; False for a body that we built.
        before: message pieces of the previous body of this path; empty where not at hand.
    """

    at: float
    path: str
    header: Header
    body: bytes
    observed: bool
    before: tuple[bytes, ...] = ()
    apart: Body | None = None


class Answered(Struct, frozen=True, kw_only=True):
    """The provider answered the call.

    `wanted` is what was wanted, its messages aside: where the answer is a summary that was asked
    for, that call is still to be sent.
    """

    at: float
    path: str
    parts: Parts
    stop_reason: str | None
    usage: Usage | None
    provider_id: str | None = None
    request_id: str | None = None
    diagnosis: str | None = None
    wanted: CallWanted | None = None


class Overflow(Struct, frozen=True, kw_only=True):
    """What a provider said of a request that does not fit; None where it named no figure.

    Attributes:
        window_tokens: the limit of the model.
        input_tokens: the length of the request; some count only up to the limit.
        room_tokens: what is left for the answer, where the request itself fits.
    """

    window_tokens: int | None = None
    input_tokens: int | None = None
    room_tokens: int | None = None


class Refused(Struct, frozen=True, kw_only=True):
    """The call failed.

    `wanted` is what was wanted, its messages aside, for a call that can be tried once more; where
    the engine does not, the error goes on to the caller. `overflow` is there where a shorter
    request, or one with less room for its answer, might be taken.
    """

    at: float
    path: str
    error: str
    status: int | None
    message: str
    wanted: CallWanted | None = None
    overflow: Overflow | None = None


class ToolStarted(Struct, frozen=True, kw_only=True):
    """A tool body is about to run."""

    at: float
    path: str
    call_id: str
    name: str
    arguments: str


class ToolReturned(Struct, frozen=True, kw_only=True):
    """A tool body returned, or raised; `server` names the tool server it was asked of, if any."""

    at: float
    path: str
    call_id: str
    name: str
    parts: Parts
    is_error: bool
    error: str | None = None
    server: str = ""


class ToolsWanted(Struct, frozen=True, kw_only=True):
    """A model looked for tools of these names, which are to be offered from now on."""

    at: float
    path: str
    names: tuple[str, ...]


class KeepWanted(Struct, frozen=True, kw_only=True):
    """A source of the frame wants texts kept for an agent path, by key; an empty one let go."""

    at: float
    path: str
    source: str
    texts: Mapping[str, str]


Input: TypeAlias = (
    SessionStarted
    | CallWanted
    | CompactWanted
    | PruneWanted
    | WarmWanted
    | PinWanted
    | BodyLeft
    | Answered
    | Refused
    | ToolStarted
    | ToolReturned
    | ToolsWanted
    | KeepWanted
)
