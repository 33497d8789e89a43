"""One model call, one tool run: what is logged before, during and after."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain.agents.middleware.types import ModelResponse
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from barograph.core.canonical import dump_json
from barograph.core.engine import Send
from barograph.core.errors import SurfaceError
from barograph.core.frames import Offer
from barograph.core.inputs import Answered, CallWanted, Refused, ToolReturned, ToolStarted
from barograph.core.parts import Parts
from barograph.core.steering import HandBack
from barograph.langchain.asking import asked_by
from barograph.langchain.messages import read_message
from barograph.langchain.places import inside_tool
from barograph.langchain.refusals import overflow_of
from barograph.langchain.track import Prepared, Reading, Track
from barograph.langchain.wire import WATCH, Envelope, Watch, install
from barograph.providers.anthropic.usage import usage_of_langchain

SERVER = "mcp_server"
"""Key in the metadata of a tool: the tool server that it belongs to."""

_SHOWN_CHARS = 2000
_SHOWN_PIECES = 5
_log = logging.getLogger("barograph")


class ModelCall:
    """A model call under way; it is over before it begins where the turn is handed back.

    Args:
        track: the agent path that calls.
        reading: LangChain's model request, as the track has just read it.
        offer: what the sources of the frame offer, where they were asked.
        clock: seconds since the epoch.
        is_async: which of the model's clients will send it.
        on_begin: told when a response begins, where it is seen, and when there is an answer.
    """

    def __init__(
        self,
        track: Track,
        reading: Reading,
        offer: Offer | None,
        *,
        clock: Callable[[], float],
        is_async: bool,
        on_begin: Callable[[], None],
    ) -> None:
        self._track = track
        self._clock = clock
        # before the request is built: a copy of the model, for a summary, shares its clients then
        self._is_watched = install(reading.asked.model, is_async=is_async)
        if track.summariser is not None:
            self._is_watched &= install(track.summariser, is_async=is_async)
        self.model = reading.asked.model
        self._ttl = track.session.engine.policy.entry_ttl
        self._on_begin = on_begin
        self._watch = Watch(self._record, on_begin, self._ttl)
        prepared = track.prepare(reading, offer)
        self.is_over = isinstance(prepared, HandBack)
        self.response: Any = None
        if isinstance(prepared, HandBack):
            self.response = _handed_back(prepared)
            return
        self._prepared: Prepared = prepared
        if prepared.send.plan.round == 1:
            self._say_what_is_fixed(prepared.wanted)

    @property
    def envelope(self) -> Envelope | None:
        """How its last request was sent; None where that was not seen."""
        return self._watch.envelope

    @property
    def request(self) -> Any:
        """What to send."""
        return self._prepared.request

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Record the bytes that leave meanwhile, and an error if that is how it ends.

        The error does not get out where the call is to be sent once more: then it is not over.
        """
        if not self._is_watched:
            self._track.record_built(self._prepared, at=self._clock())
        token = WATCH.set(self._watch)
        try:
            yield
        except GraphBubbleUp:
            self._rest()
            raise
        except Exception as error:
            stopped_by = self._watch.stopped_by
            if stopped_by is not None:
                if isinstance(stopped_by, SurfaceError):
                    self._refuse(stopped_by)
                self._rest()
                raise stopped_by from error
            if not self._goes_on(self._refuse(error)):
                raise
        except BaseException:  # cancelled: nothing more is heard of this call
            self._rest()
            raise
        finally:
            WATCH.reset(token)

    def finish(self, response: Any) -> None:
        """Log the answer: as the provider sent it where that was seen, else as LangChain has it."""
        self.response = response
        self._on_begin()
        said = self._watch.answer()
        message = _answer_in(response)
        if said is not None:
            parts, usage, stop_reason = said.parts, said.usage, said.stop_reason
        elif message is not None:
            parts = read_message(message).incoming.parts
            usage = usage_of_langchain(message.usage_metadata, ttl=self._ttl)
            stop_reason = message.response_metadata.get("stop_reason")
        else:
            parts, usage, stop_reason = (), None, None
        send = self._note(
            Answered(
                at=self._clock(),
                path=self._prepared.path,
                parts=parts,
                stop_reason=stop_reason,
                usage=usage,
                provider_id=said.provider_id if said else None,
                request_id=self._watch.request_id,
                diagnosis=said.diagnosis if said else None,
                wanted=self._prepared.wanted,
            )
        )
        self.is_over = not self._goes_on(send)
        if self.is_over and _ends_agent(response):
            self._rest()

    def _goes_on(self, send: Send | None) -> bool:
        """Whether something is still to be sent, which is prepared now."""
        if send is not None:
            self._prepared = self._track.prepare_again(self._prepared, send)
        elif self._prepared.is_summary:
            # Nothing was made of its end, and the agent has not been answered: a summary is no
            # answer, and a summary that failed is no error of its call.
            asked = self._prepared.asked
            reading = self._track.read(asked, at=self._clock(), summarises=False)
            prepared = self._track.prepare(reading)
            if isinstance(prepared, HandBack):
                self.response = _handed_back(prepared)
                return False
            self._prepared = prepared
        else:
            return False
        return True

    def _rest(self) -> None:
        for path in dict.fromkeys((self._prepared.path, self._track.path)):
            self._track.session.rest(path)

    def _record(self, body: bytes) -> None:
        track = self._track
        mismatches: tuple[str, ...] = ()
        with _going_on(track):
            mismatches = track.session.leave(
                at=self._clock(),
                path=self._prepared.path,
                header=self._prepared.header,
                body=body,
                observed=True,
            )
        if mismatches:
            _speak_of(mismatches, track)

    def _note(self, given: Answered | Refused) -> Send | None:
        took: list[Send | None] = []
        with _going_on(self._track):
            took.append(self._track.session.take(given))
        return took[0] if took else None

    def _refuse(self, error: Exception) -> Send | None:
        """Log an error; what to send where the call is to be tried once more."""
        status = getattr(error, "status_code", None)
        message = str(error)[:_SHOWN_CHARS]
        overflow = overflow_of(error, self._prepared.request)
        send = self._note(
            Refused(
                at=self._clock(),
                path=self._prepared.path,
                error=type(error).__name__,
                status=status if isinstance(status, int) else None,
                message=message,
                wanted=self._prepared.wanted,
                overflow=overflow,
            )
        )
        if send is not None:
            _log.warning(
                "barograph: the provider refused a request of %s in session %s, which goes on %s: "
                "%s",
                self._track.path,
                self._track.session.id,
                "without that summary"
                if self._prepared.is_summary
                else _in_words(send, is_overflow=overflow is not None),
                message,
            )
        elif overflow is not None:
            self._say_what_does_not_fit()
        return send

    def _say_what_does_not_fit(self) -> None:
        """Nothing more may be folded: say what is in the way, since the provider only counts."""
        gauge = self._track.session.gauge(self._prepared.wanted)
        _log.error(
            "barograph: the request of %s in session %s does not fit and cannot be shortened "
            "further: of about %d tokens that are usable, tools and system take about %d, the "
            "messages about %d. Shorten what is largest in `barograph context %s`, or choose a "
            "model with a larger window.",
            self._track.path,
            self._track.session.id,
            gauge.usable_tokens,
            gauge.fixed_tokens,
            gauge.projected_tokens - gauge.fixed_tokens,
            self._track.session.id,
        )

    def _say_what_is_fixed(self, wanted: CallWanted) -> None:
        """Say once where relief is due for what it cannot take off."""
        track, policy = self._track, self._track.session.engine.policy
        if track.is_fixed_told or not policy.compacts:
            return
        gauge = track.session.gauge(wanted)
        begins_tokens = policy.hard_ratio * gauge.usable_tokens
        if gauge.fixed_tokens < begins_tokens:
            return
        track.is_fixed_told = True
        _log.warning(
            "barograph: tools and system of %s in session %s take about %d tokens, a fixed part "
            "that no fold takes off, and history is folded from %d tokens on. Offer fewer tools, "
            "shorten the system prompt, or choose a model with a larger window.",
            track.path,
            track.session.id,
            gauge.fixed_tokens,
            begins_tokens,
        )


class ToolRun:
    """A tool run under way."""

    def __init__(self, track: Track, request: Any, *, clock: Callable[[], float]) -> None:
        call: Mapping[str, Any] = request.tool_call
        self._track = track
        self._session, self._path, self._clock = track.session, track.path, clock
        self._call_id, self._name = str(call.get("id") or ""), str(call["name"])
        self._server = str((getattr(request.tool, "metadata", None) or {}).get(SERVER) or "")
        self._session.take(
            ToolStarted(
                at=clock(),
                path=self._path,
                call_id=self._call_id,
                name=self._name,
                arguments=dump_json(call["args"]).decode("utf-8", "replace"),
            )
        )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Log the exception if that is how the tool ends; an interrupt is no end.

        Agents that run meanwhile are children of this call.
        """
        try:
            with (
                inside_tool(self._track, self._call_id, self._name),
                asked_by(self._track, self._clock),
            ):
                yield
        except Exception as error:
            if isinstance(error, GraphBubbleUp):
                self._session.rest(self._path, self._call_id)
            else:
                self._end((), error=f"{type(error).__name__}: {error}"[:_SHOWN_CHARS])
            raise
        except BaseException:  # cancelled
            self._session.rest(self._path, self._call_id)
            raise

    def finish(self, result: Any) -> None:
        """Log what the tool gave back: a message, or a command that carries one."""
        message = _result_in(result, self._call_id)
        parts = read_message(message).incoming.parts if message is not None else ()
        is_error = message is not None and message.status == "error"
        self._end(parts, is_error=is_error)

    def _end(self, parts: Parts, *, is_error: bool = True, error: str | None = None) -> None:
        self._session.take(
            ToolReturned(
                at=self._clock(),
                path=self._path,
                call_id=self._call_id,
                name=self._name,
                parts=parts,
                is_error=is_error,
                error=error,
                server=self._server,
            )
        )


@contextmanager
def _going_on(track: Track) -> Iterator[None]:
    """Keep a defect of our bookkeeping from becoming the agent's: one loud line, and go on."""
    try:
        yield
    except SurfaceError as error:
        _log.error("barograph: %s of session %s: %s", track.path, track.session.id, error)


def _speak_of(mismatches: tuple[str, ...], track: Track) -> None:
    """Say that something behind us changed the request, or stop it (policy `on_mismatch`).

    Raises:
        SurfaceError: the policy is to stop.
    """
    where = ", ".join(mismatches[:_SHOWN_PIECES])
    error = SurfaceError(
        f"The request of {track.path} in session {track.session.id} is not the surface: it differs "
        f"in {where}.",
        next_step="A middleware behind Barograph, or an option of the model, changes it: put "
        "Barograph last, and ask barograph.langchain.check(agent).",
        path=track.path,
        session=track.session.id,
    )
    if track.session.engine.policy.on_mismatch == "stop":
        raise error
    if not track.is_mismatch_told:
        track.is_mismatch_told = True
        _log.error("barograph: %s", error)


def _in_words(send: Send, *, is_overflow: bool) -> str:
    """How a call goes on that was refused."""
    if send.plan.max_tokens is not None:
        return f"with room for an answer of {send.plan.max_tokens} tokens"
    if is_overflow:
        return f"with about {send.plan.projected_tokens} tokens, old content folded"
    return (
        f"with {len(send.breakpoints)} cache markers for an hour; Policy(markers='off') places none"
    )


def _handed_back(stop: HandBack) -> ModelResponse[Any]:
    """What an agent gets where no call is made: words in the place of an answer."""
    message = AIMessage(stop.text, response_metadata={"stop_reason": stop.cause})
    return ModelResponse(result=[message])


def _answer_in(response: Any) -> AIMessage | None:
    response = getattr(response, "model_response", response)
    for message in getattr(response, "result", [response]):
        if isinstance(message, AIMessage):
            return message
    return None


def _ends_agent(response: Any) -> bool:
    """Whether it is an answer of a given form, and its calls of tools were but a way to give it."""
    response = getattr(response, "model_response", response)
    if getattr(response, "structured_response", None) is None:
        return False
    answered = {one.tool_call_id for one in response.result if isinstance(one, ToolMessage)}
    called = (call["id"] for one in response.result for call in getattr(one, "tool_calls", ()))
    return answered.issuperset(called)


def _result_in(result: Any, call_id: str) -> ToolMessage | None:
    if isinstance(result, ToolMessage):
        return result
    update = getattr(result, "update", None)
    messages = update.get("messages", []) if isinstance(update, dict) else []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
            return message
    return None
