"""The middleware: every model call and every tool call of an agent, logged and governed.

It sees the request that all other middleware left, if it is the last in the list. It has wraps
only: a node hook would double the checkpoints of every round.
"""

import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import BaseTool

from barograph.core.engine import Engine
from barograph.core.errors import UsageError
from barograph.core.events import FrameComposed
from barograph.core.framing import preview, supposed
from barograph.core.policy import Policy
from barograph.frame import MODES, Ask, Composer, Mode, Source
from barograph.langchain.byhand import ByHand
from barograph.langchain.calls import ModelCall, ToolRun
from barograph.langchain.deferred import SEARCH_TOOLS
from barograph.langchain.fanout import Departure
from barograph.langchain.owners import check_callers, check_stack
from barograph.langchain.places import Places
from barograph.langchain.rehearsal import is_rehearsing
from barograph.langchain.sourcetools import tools_of
from barograph.langchain.tools import RECALL
from barograph.langchain.track import Reading, Track
from barograph.langchain.warmer import Warmer
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.settings import current_settings
from barograph.store import MemoryStore, Store, open_store


class Barograph(ByHand, AgentMiddleware[Any, Any, Any]):
    """Logs every call, sends byte-stable requests, and places the cache breakpoints.

    Put it last in the list: it must see what all others did to the request.

    Args:
        store: path of the store, a store object, or `memory`; by default the one of the settings,
            which is the user's own.
        policy: how sessions are governed; by default the one of the settings.
        session: id of the session; by default LangGraph's `thread_id`, and without one a session
            of its own for each history.
        frame: sources of the context that comes with each turn, in the order of their sections.
        mode: what kind of runs these are; a `private` one leaves nothing durable: its store is
            memory, and sources that tell of other sessions are not asked.
        summariser: a chat model that sums up old history in the place of the agent's own. It reads
            a transcript that is cut to its window, and nothing from the agent's cache.
        clock: seconds since the epoch.

    Raises:
        UsageError: no such mode, a store for a private one, or the summariser is of a kind whose
            requests are not known.
        SettingsError: a file of settings or a variable cannot be used.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        store: str | Path | Store | None = None,
        *,
        policy: Policy | None = None,
        session: str | None = None,
        frame: Sequence[Source] = (),
        mode: Mode = "normal",
        summariser: ChatAnthropic | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if mode not in MODES:  # one misspelt would leave all of a private run behind
            raise UsageError(
                f"There is no mode {mode!r}.",
                next_step=f"Choose one of {', '.join(sorted(MODES))}.",
            )
        if mode == "private":
            store = _in_memory(store)
        if summariser is not None and not isinstance(summariser, ChatAnthropic):
            raise UsageError(
                f"{type(summariser).__name__} cannot be the summariser.",
                next_step="Give a ChatAnthropic, or none: then the agent's own model sums up.",
            )
        if is_rehearsing():
            store = MemoryStore()
        if store is None or policy is None:
            settings = current_settings()
            policy = policy or settings.policy
            kept = settings.store
            store = store or open_store(
                kept.path,
                synchronous=kept.synchronous,
                busy_timeout_seconds=kept.busy_timeout_seconds,
                sets_aside=policy.on_store_error == "continue",
            )
        self.store = open_store(store, sets_aside=policy.on_store_error == "continue")
        self.policy = policy
        self._codec = AnthropicCodec(respell_arguments=True)
        engine = Engine(self._codec, self.policy)
        self._places = Places(
            self.store, engine, session=session, clock=clock, mode=mode, summariser=summariser
        )
        self._clock = clock
        self._warmer = Warmer(clock)
        self._composer = Composer(() if is_rehearsing() else frame)
        # apart: a source that hangs in a preview must not be left out of a turn
        self._previewer = Composer(frame)
        self._source_tools = tools_of(one for one in frame if mode in one.modes)
        self._mode: Mode = mode
        self._left_alone: set[str] = set()

    @property
    def tools(self) -> Sequence[BaseTool]:  # type: ignore[override]  # a value in the base class
        """`read_original`, `history_search` and `history_read`, where content may be folded.

        And `search_tools`, where the policy names the tools that are offered at first, and those
        of the frame's sources.

        `create_agent` asks for them once: then its list is checked. They are there from the first
        call on, so that the tools never change in mid-session.

        Raises:
            SecondOwner: another middleware of the list owns the surface too.
        """
        check_stack(self)
        recall = () if self.policy.name == "off" else RECALL
        found = () if self.policy.base_tools is None else (SEARCH_TOOLS,)
        return (*recall, *found, *self._source_tools)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the surface instead of the history; log the request, its bytes and the answer."""
        if not self._governs(request.model):
            return handler(request)
        with self._places.of_call(request.messages) as track:
            _vet(track)
            with Departure(track.session, track.cold_prefix(request, at=self._clock())) as leaving:
                leaving.turn()
                reading = track.read(request, at=self._clock())
                ask = self._asks(track, reading)
                offer = self._composer.compose(ask) if ask else None
                call = ModelCall(
                    track,
                    reading,
                    offer,
                    clock=self._clock,
                    is_async=False,
                    on_begin=leaving.begun,
                )
                while not call.is_over:
                    with call.attempt():
                        response = handler(call.request)
                        call.finish(response)
            self._warmer.follow(track, call)
            return call.response

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        if not self._governs(request.model):
            return await handler(request)
        with self._places.of_call(request.messages) as track:
            _vet(track)
            with Departure(track.session, track.cold_prefix(request, at=self._clock())) as leaving:
                await leaving.turn_async()
                reading = track.read(request, at=self._clock())
                ask = self._asks(track, reading)
                offer = await self._composer.acompose(ask) if ask else None
                call = ModelCall(
                    track,
                    reading,
                    offer,
                    clock=self._clock,
                    is_async=True,
                    on_begin=leaving.begun,
                )
                while not call.is_over:
                    with call.attempt():
                        response = await handler(call.request)
                        call.finish(response)
            self._warmer.follow(track, call)
            return call.response

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Log that a tool runs, and what it gave back."""
        track = self._places.of_tool(str(request.tool_call.get("id") or ""))
        run = ToolRun(track, request, clock=self._clock)
        with run.watched():
            result = handler(request)
            run.finish(result)
        return result

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same for async agents."""
        track = self._places.of_tool(str(request.tool_call.get("id") or ""))
        run = ToolRun(track, request, clock=self._clock)
        with run.watched():
            result = await handler(request)
            run.finish(result)
        return result

    def preview_frame(
        self, text: str, *, session: str | None = None, path: str = "main"
    ) -> FrameComposed:
        """The frame that the next turn would have if the user said this now.

        Sources are asked as for a turn. Nothing is logged, and no session is begun or held: the
        event that comes back is the one that a turn would log, with its sections, the text of each
        in `parts`, and the sources that failed.

        Args:
            text: what the user would say.
            session: id of the session, which need not be there yet; by default the one that runs
                now, as in a tool.
            path: agent path.

        Raises:
            UsageError: it is not known which session is meant.
            StoreError: the store cannot be read.
            LogError: the log is damaged, or of a newer version.
        """
        ask = self._supposes(text, session, path)
        return preview(ask.state, self._previewer.compose(ask), at=ask.at, path=path)

    async def apreview_frame(
        self, text: str, *, session: str | None = None, path: str = "main"
    ) -> FrameComposed:
        """The same without blocking the event loop for a source."""
        ask = self._supposes(text, session, path)
        offer = await self._previewer.acompose(ask)
        return preview(ask.state, offer, at=ask.at, path=path)

    @property
    def failed_appends(self) -> int:
        """How often the store did not take what it should keep; the logger says why."""
        return self._places.failed_appends

    def _asks(self, track: Track, reading: Reading) -> Ask | None:
        """What to ask the sources of the frame, where this call begins a turn."""
        sources = self._composer.sources
        opening = track.session.opens_turn(reading.wanted) if sources else None
        if opening is None:
            return None
        return Ask(
            session=track.session.id,
            path=track.path,
            text=opening.text,
            at=reading.wanted.at,
            mode=self._mode,
            state=opening.state,
        )

    def _supposes(self, text: str, session: str | None, path: str) -> Ask:
        """What to ask the sources of the frame for a turn that there is not."""
        at = self._clock()
        name, state = self._places.peek(session)
        state = supposed(self._codec, state, text=text, at=at, path=path)
        return Ask(session=name, path=path, text=text, at=at, mode=self._mode, state=state)

    def close(self) -> None:
        """Write what still waits for the store, and close it. Nothing is sent any more."""
        self._warmer.close()
        self._places.close()
        self.store.close()

    def _governs(self, model: Any) -> bool:
        """Whether requests of this model can be derived; says once of each kind what cannot."""
        if isinstance(model, ChatAnthropic):
            return True
        kind = type(model).__name__
        if kind not in self._left_alone:
            self._left_alone.add(kind)
            warnings.warn(
                f"Barograph leaves calls of {kind} as they are: it knows the Anthropic Messages "
                "format only, so far.",
                stacklevel=3,
            )
        return False


def _in_memory(store: str | Path | Store | None) -> Store:
    """The store of private sessions.

    Raises:
        UsageError: another one was given.
    """
    if store is None or store == "memory":
        return MemoryStore()
    if isinstance(store, MemoryStore):
        return store
    raise UsageError(
        "A private session leaves nothing durable, and a store was given for it.",
        next_step="Give mode='private' no store, or choose another mode.",
    )


def _vet(track: Track) -> None:
    """Look once at the callers of a track for second owners."""
    if not track.is_vetted:
        check_callers()
        track.is_vetted = True
