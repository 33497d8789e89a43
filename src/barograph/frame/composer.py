"""Ask all sources at once, each within its own time; what one does is nothing to the others."""

import asyncio
import contextvars
import inspect
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Final, cast

from msgspec.structs import replace

from barograph.core.errors import UsageError
from barograph.core.events import FrameMissed
from barograph.core.frames import Offer, Offered
from barograph.core.texts import cut_to_budget
from barograph.core.trust import Item
from barograph.frame.source import Ask, Given, Source

_REASON_CHARS: Final = 200


class Composer:
    """Asks sources in their order. Safe to use from several threads.

    Args:
        sources: in the order of their sections.

    Raises:
        UsageError: two of them have one name.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        twice = [name for name, count in Counter(one.name for one in sources).items() if count > 1]
        if twice:
            raise UsageError(
                f"Two sources of the frame have the name {twice[0]!r}.",
                next_step="Give each its own name: by it a section is known from turn to turn.",
                source=twice[0],
            )
        self.sources: Final = tuple(sources)
        self._hanging: dict[str, Future[Given]] = {}

    def compose(self, ask: Ask) -> Offer:
        """What all sources offer for a turn."""
        began = time.monotonic()
        asked = [(one, self._started(one, ask)) for one in self.sources if one.is_for(ask)]
        return _offer(
            [(one, _awaited(one, future, began + one.timeout_seconds)) for one, future in asked]
        )

    async def acompose(self, ask: Ask) -> Offer:
        """The same without blocking the event loop."""
        asked = [one for one in self.sources if one.is_for(ask)]
        given = await asyncio.gather(*(self._given(one, ask) for one in asked))
        return _offer(list(zip(asked, given, strict=True)))

    async def _given(self, source: Source, ask: Ask) -> Given | FrameMissed:
        try:
            async with asyncio.timeout(source.timeout_seconds):
                if inspect.iscoroutinefunction(source.compose):
                    return cast("Given", await source.compose(ask))
                started = self._started(source, ask)
                if isinstance(started, FrameMissed):
                    return started
                waiting = asyncio.wrap_future(started)
                waiting.add_done_callback(_heard)
                return await asyncio.shield(waiting)
        except TimeoutError:
            return _late(source)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is that source's alone
            return _failed(source, error)

    def _started(self, source: Source, ask: Ask) -> Future[Given] | FrameMissed:
        """A thread of its own for a source; none while an earlier one still hangs."""
        before = self._hanging.get(source.name)
        if before is not None and not before.done():
            return FrameMissed(source.name, "it has not answered an earlier turn yet")
        future = self._hanging[source.name] = Future[Given]()
        context = contextvars.copy_context()
        # A daemon: one that hangs for ever must not keep the process.
        thread = threading.Thread(
            target=context.run,
            args=(_run, source, ask, future),
            name=f"barograph-frame-{source.name}",
            daemon=True,
        )
        thread.start()
        return future


def _run(source: Source, ask: Ask, future: Future[Given]) -> None:
    try:
        given = source.compose(ask)
        if inspect.isawaitable(given):
            given = asyncio.run(_wait_for(given))
        future.set_result(given)
    except BaseException as error:  # noqa: BLE001 - carried to whoever waits
        future.set_exception(error)


async def _wait_for(given: Awaitable[Given]) -> Given:
    return await given


def _heard(future: asyncio.Future[Given]) -> None:
    """Take note of an end that came too late, or asyncio would complain that nobody did."""
    if not future.cancelled():
        future.exception()


def _awaited(
    source: Source, started: Future[Given] | FrameMissed, deadline: float
) -> Given | FrameMissed:
    if isinstance(started, FrameMissed):
        return started
    try:
        return started.result(timeout=max(0.0, deadline - time.monotonic()))
    except FutureTimeoutError as error:
        return _failed(source, error) if started.done() else _late(source)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is that source's alone
        return _failed(source, error)


def _offer(given: Sequence[tuple[Source, Given | FrameMissed]]) -> Offer:
    sections: list[Offered] = []
    missed: list[FrameMissed] = []
    for source, one in given:
        found = one if isinstance(one, FrameMissed) else _offered(source, one)
        if isinstance(found, FrameMissed):
            missed.append(found)
        else:
            sections.append(found)
    return Offer(sections=tuple(sections), missed=tuple(missed))


def _offered(source: Source, given: Given) -> Offered | FrameMissed:
    """What a source gave, within its budget."""
    if given is None or isinstance(given, str):
        text = cut_to_budget((given or "").strip(), source.budget_chars)
        if source.trust == "operator" or not text:
            return Offered(source=source.name, text=text)
        items: tuple[Item, ...] = (Item(id=source.name, text=text, trust=source.trust),)
    else:
        try:
            items = _within(tuple(given), source.budget_chars)
        except (TypeError, AttributeError):
            return FrameMissed(source.name, f"it gave {type(given).__name__}, no text and no items")
    return Offered(source=source.name, items=items, adds=source.adds)


def _within(items: tuple[Item, ...], budget_chars: int) -> tuple[Item, ...]:
    """As many whole items as the budget has room for; the first one cut if it has not even that."""
    kept: list[Item] = []
    left = budget_chars
    for item in items:
        if len(item.text) > left:
            if not kept:
                kept.append(replace(item, text=cut_to_budget(item.text, left)))
            break
        kept.append(item)
        left -= len(item.text)
    return tuple(kept)


def _late(source: Source) -> FrameMissed:
    return FrameMissed(source.name, f"it did not answer within {source.timeout_seconds:g} s")


def _failed(source: Source, error: BaseException) -> FrameMissed:
    return FrameMissed(source.name, f"{type(error).__name__}: {error}"[:_REASON_CHARS])
