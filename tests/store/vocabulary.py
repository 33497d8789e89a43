"""Events for tests, derived from the event classes: a new type or field is covered at once."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import Struct

from barograph.core.events import Event, MessageSeen, TurnBegan
from barograph.core.parts import Text

EVENT_TYPES = get_args(Event)
LARGE_CHARS = 2200
AWKWARD = ("", "\0", "a\0b", "\u2028\u2029", "\ufeff", "\U0001f600", "e\u0301", "</x>", "\\u0000")
FORGED = '{"parts":"b2:' + "0" * 64 + '"}'

_texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from((*AWKWARD, FORGED)),
    st.text(min_size=1, max_size=4).map(lambda text: text * LARGE_CHARS),
)


def tag_of(kind: type) -> str:
    return kind.__struct_config__.tag


def turn(number: int, *, at: float = 1.0) -> TurnBegan:
    return TurnBegan(at=at, path="main", turn=number)


def message(text: str, *, at: float = 1.0) -> MessageSeen:
    return MessageSeen(at=at, path="main", role="user", origin="caller", parts=(Text(text),))


def events() -> st.SearchStrategy[Event]:
    return st.one_of(*(_values(kind) for kind in EVENT_TYPES))


def example(kind: Any, *, large: bool) -> Any:
    """One value of a type, the same in every run; `large` makes its bodies external."""
    return _example(kind, "L" * LARGE_CHARS + "\u2028\0\U0001f600" if large else "\u00e9")


def _values(hint: Any) -> st.SearchStrategy[Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(_values(args[0]), max_size=3).map(tuple)
    if origin in {Union, UnionType}:
        return st.one_of(*(_values(one) for one in args))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint)
        return st.builds(hint, **{name: _values(hints[name]) for name in hint.__struct_fields__})
    return {
        str: _texts,
        int: st.integers(),
        bool: st.booleans(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
    }[hint]


def _example(hint: Any, text: str) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return args[-1]
    if origin is tuple:
        is_union = get_origin(args[0]) in {Union, UnionType}
        kinds = get_args(args[0]) if is_union else (args[0],)
        return tuple(_example(kind, text) for kind in kinds)
    if origin in {Union, UnionType}:
        return _example(args[0], text)
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint)
        return hint(**{name: _example(hints[name], text) for name in hint.__struct_fields__})
    return {str: text, int: 7, bool: True, float: 1.25}[hint]
