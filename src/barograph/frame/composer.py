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
from typing import Final, TypeAlias, get_args

from msgspec.structs import replace

from barograph.core.canonical import clean_text
from barograph.core.errors import UsageError
from barograph.core.events import FrameMissed
from barograph.core.frames import Offer, Offered
from barograph.core.texts import NAME_CHARS, attribute, cut_to_budget, item_chars
from barograph.core.trust import Item, Trust
from barograph.frame.source import Ask, Given, Source

_REASON_CHARS: Final = 200
_TEXTS: Final = ("id", "text", "origin", "domain", "date")
_Found: TypeAlias = Offered | FrameMissed


class Composer:
    """Asks sources in their order. Safe to use from several threads.

    Args:
        sources: in the order of their sections.

    Raises:
        UsageError: two of them have one name, or names that the model sees alike.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        shown = Counter(attribute(one.name) for one in sources)
        alike = [one.name for one in sources if shown[attribute(one.name)] > 1]
        if alike:
            raise UsageError(
                "Sources of the frame have one name, as the model sees it: "
                f"{', '.join(map(repr, alike))}.",
                next_step="Give each its own name: by it a section is known from turn to turn.",
                sources=tuple(alike),
            )
        self.sources: Final = tuple(sources)
        self._hanging: dict[str, Future[_Found]] = {}

    def compose(self, ask: Ask) -> Offer:
        """What all sources offer for a turn."""
        began = time.monotonic()
        asked = [(one, self._started(one, ask)) for one in self.sources if one.is_for(ask)]
        return _offer(
            [self._awaited(one, future, began + one.timeout_seconds) for one, future in asked]
        )

    async def acompose(self, ask: Ask) -> Offer:
        """The same without blocking the event loop."""
        asked = [one for one in self.sources if one.is_for(ask)]
        return _offer(await asyncio.gather(*(self._found(one, ask) for one in asked)))

    async def _found(self, source: Source, ask: Ask) -> _Found:
        """What a source gives in its time. What will not end when it is cancelled is left alone."""
        started = None
        future: asyncio.Future[_Found]
        if inspect.iscoroutinefunction(source.compose):
            future = asyncio.create_task(_asked(source, ask))
        else:
            started = self._started(source, ask)
            future = asyncio.wrap_future(started)
        try:
            await asyncio.wait({future}, timeout=source.timeout_seconds)
            return future.result() if future.done() else _late(source)
        finally:
            future.cancel()
            if started is not None:
                self._look_at(source, started)

    def _started(self, source: Source, ask: Ask) -> Future[_Found]:
        """A thread of its own for a source; none while one that was late still hangs."""
        future = Future[_Found]()
        future.set_running_or_notify_cancel()  # a thread cannot be cancelled
        before = self._hanging.get(source.name)
        if before is not None and not before.done():
            future.set_result(FrameMissed(source.name, "it has not answered an earlier turn yet"))
            return future
        context = contextvars.copy_context()
        # A daemon: one that hangs for ever must not keep the process.
        thread = threading.Thread(
            target=context.run,
            args=(_run, source, ask, future),
            name=f"barograph-frame-{source.name}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            future.set_result(_failed(source, error))
        return future

    def _awaited(self, source: Source, started: Future[_Found], deadline: float) -> _Found:
        try:
            return started.result(timeout=max(0.0, deadline - time.monotonic()))
        except FutureTimeoutError:
            return _late(source)
        finally:
            self._look_at(source, started)

    def _look_at(self, source: Source, started: Future[_Found]) -> None:
        """Remember one that nobody waits for any more. Other turns may ask at the same time."""
        if not started.done():
            self._hanging[source.name] = started


def _run(source: Source, ask: Ask, future: Future[_Found]) -> None:
    found: _Found
    try:
        given = source.compose(ask)
        if inspect.isawaitable(given):
            given = asyncio.run(_wait_for(given))
        found = _offered(source, given)
    except BaseException as error:  # noqa: BLE001 - what ends this thread is that source's alone
        found = _failed(source, error)
    future.set_result(found)


async def _asked(source: Source, ask: Ask) -> _Found:
    try:
        return _offered(source, await source.compose(ask))  # type: ignore[misc]
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - its alone
        return _failed(source, error)


async def _wait_for(given: Awaitable[Given]) -> Given:
    return await given


def _offer(found: Sequence[_Found]) -> Offer:
    return Offer(
        sections=tuple(one for one in found if isinstance(one, Offered)),
        missed=tuple(one for one in found if isinstance(one, FrameMissed)),
    )


def _offered(source: Source, given: object) -> _Found:
    """What a source gave, within its budget."""
    if given is None or isinstance(given, str):
        text = cut_to_budget(clean_text(given or "").strip(), source.budget_chars)
        if source.trust == "operator" or not text:
            return Offered(source=source.name, text=text)
        items: tuple[Item, ...] = (Item(id=source.name, text=text, trust=source.trust),)
    elif isinstance(given, Sequence) and all(map(_is_item, given)):
        items = _within(tuple(map(_cleaned, given)), source.budget_chars)
    else:
        return FrameMissed(source.name, f"it gave {type(given).__name__}, no text and no items")
    return Offered(source=source.name, items=items, adds=source.adds)


def _is_item(given: object) -> bool:
    """Whether it is an item, and can be logged as one: nobody has checked what it is made of."""
    return (
        isinstance(given, Item)
        and all(isinstance(getattr(given, name), str) for name in _TEXTS)
        and given.trust in get_args(Trust)
    )


def _cleaned(item: Item) -> Item:
    said = {name: clean_text(getattr(item, name)) for name in _TEXTS}
    # as much as is shown of them; the text has the budget for its limit
    short = {name: text[:NAME_CHARS] for name, text in said.items() if name != "text"}
    return replace(item, **{**said, **short})


def _within(items: tuple[Item, ...], budget_chars: int) -> tuple[Item, ...]:
    """As many whole items as the budget has room for; the first one cut if it has not even that.

    The envelope of an item counts too, or a crowd of empty ones would cost nothing.
    """
    kept: list[Item] = []
    left = budget_chars
    for item in items:
        if not item.text.strip():
            continue
        left -= 0 if not kept else item_chars(item) - len(item.text)
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
    try:
        said = clean_text(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - an error of others may not even have words
        said = type(error).__name__
    return FrameMissed(source.name, said[:_REASON_CHARS])
