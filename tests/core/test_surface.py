from hashlib import blake2b

import pytest
from histories import IMAGE, block_text

from barograph.core.errors import LogCorrupt, SurfaceError, UnpairedToolCall
from barograph.core.events import (
    Breakpoint,
    HeaderSet,
    MessageLeftOut,
    MessageSeen,
    Replaced,
    ResponseCame,
    TurnBegan,
)
from barograph.core.parts import Text, ToolCall, ToolResult
from barograph.core.surface import (
    Entry,
    Fold,
    Surface,
    fold_events,
    marks_by_message,
    wire_messages,
)
from barograph.providers.anthropic.codec import AnthropicCodec

CODEC = AnthropicCodec()
ENTRIES = (
    Entry(1, "user", (Text("a"), IMAGE)),
    Entry(2, "user", (Text("b"),)),
    Entry(3, "assistant", (Text("c"), ToolCall("t", "look", "{}"), ToolCall("u", "look", "{}"))),
    Entry(4, "tool", (ToolResult("t", (Text("d"),)),)),
    Entry(5, "tool", (ToolResult("u", ()),)),
    Entry(6, "user", (Text("e"),)),
    Entry(7, "assistant", (Text("f"),)),
    Entry(8, "assistant", (Text("g"),)),
)


def surface_of(entries):
    surface = Surface()
    for entry in entries:
        surface = surface.appended(CODEC, entry)
    return surface


SURFACE = surface_of(ENTRIES)


def seen(path="main", text="x", **more):
    parts = () if "same_as" in more else (Text(text),)
    return MessageSeen(at=0.0, path=path, role="user", origin="caller", parts=parts, **more)


def replaced(*shadows, text=None, path="main"):
    role, parts = (None, ()) if text is None else ("user", (Text(text),))
    return Replaced(
        at=0.0, path=path, shadows=shadows, cause="fold", planned=True, role=role, parts=parts
    )


def test_neighbours_on_the_users_side_share_a_wire_message_and_assistants_do_not():
    places = [(s.message, s.block, s.entry) for s in SURFACE.segments]
    assert places == [
        (0, 0, 0), (0, 1, 0), (0, 2, 1),
        (1, 0, 2), (1, 1, 2), (1, 2, 2),
        (2, 0, 3), (2, 1, 4), (2, 2, 5),
        (3, 0, 6), (4, 0, 7),
    ]  # fmt: skip
    assert SURFACE.messages == 5 == len(list(wire_messages(CODEC, SURFACE, ())))


def test_the_key_of_a_segment_is_a_chain_over_all_blocks_before_it():
    key, chars = b"", 0
    blocks = [(entry.role, part) for entry in ENTRIES for part in entry.parts]
    for segment, (role, part) in zip(SURFACE.segments, blocks, strict=True):
        pieces = [key, role.encode(), block_text(part).encode()]
        state = blake2b(digest_size=16)
        for piece in pieces:
            state.update(len(piece).to_bytes(8, "big") + piece)
        key, chars = state.digest(), chars + CODEC.weigh(part)
        assert (segment.key, segment.end_chars) == (key, chars)


def test_only_some_blocks_may_carry_a_marker():
    marked = [s.markable for s in SURFACE.segments]
    assert marked == [True, True, True, True, False, False, True, True, True, True, True]


@pytest.mark.parametrize("keep", range(len(ENTRIES) + 1))
def test_a_cut_surface_is_the_one_that_was_never_longer(keep):
    cut, short = SURFACE.cut(keep), surface_of(ENTRIES[:keep])
    assert cut == short
    grown = cut
    for entry in ENTRIES[keep:]:
        grown = grown.appended(CODEC, entry)
    assert grown == SURFACE


@pytest.mark.parametrize("start", range(6))
def test_rendering_can_begin_at_any_wire_message(start):
    whole = list(wire_messages(CODEC, SURFACE, MARKS))
    assert list(wire_messages(CODEC, SURFACE, MARKS, start=start)) == whole[start:]


MARKS = (
    Breakpoint(level="system", block=0, ttl="1h", slot="header"),
    Breakpoint(level="messages", block=2, ttl="1h", slot="anchor"),
    Breakpoint(level="messages", block=8, ttl="5m", slot="tail"),
)


def test_markers_land_on_the_block_they_name():
    assert marks_by_message(SURFACE, MARKS) == {0: {2: "1h"}, 2: {2: "5m"}}
    first, _, third, *_ = wire_messages(CODEC, SURFACE, MARKS)
    assert first.endswith(b'"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]}')
    assert third.endswith(b'"e","cache_control":{"type":"ephemeral","ttl":"5m"}}]}')


def test_replacing_in_the_middle_renders_what_stands_after_it_anew():
    fold = Fold(seq=8, surfaces={"main": SURFACE})
    after = fold.apply(CODEC, 9, replaced(3, 4, 5, text="sum")).surface("main")
    expected = surface_of([*ENTRIES[:2], Entry(9, "user", (Text("sum"),)), *ENTRIES[5:]])
    assert after == expected
    assert after.messages == 3


def test_cutting_off_an_open_tail_is_allowed_since_what_follows_closes_it():
    after = SURFACE.replaced(CODEC, 9, replaced(5, 6, 7, 8))
    assert after == surface_of(ENTRIES[:4])


@pytest.mark.parametrize(
    "event",
    [
        replaced(5, 4),
        replaced(4, 6),
        replaced(4, 4),
        replaced(9),
        replaced(8, 9),
        replaced(0, 1),
        replaced(text="from nothing"),
    ],
    ids=str,
)
def test_what_is_not_one_whole_run_is_refused(event):
    with pytest.raises(SurfaceError, match="contiguous run"):
        SURFACE.replaced(CODEC, 9, event)


@pytest.mark.parametrize("event", [replaced(3), replaced(4), replaced(3, 4), replaced(4, text="x")])
def test_parting_calls_from_results_is_refused(event):
    with pytest.raises(UnpairedToolCall) as caught:
        SURFACE.replaced(CODEC, 9, event)
    assert caught.value.ids["shadows"] == event.shadows


def test_replacing_nothing_by_nothing_changes_nothing():
    assert SURFACE.replaced(CODEC, 9, replaced()) is SURFACE


def test_each_path_has_a_surface_of_its_own():
    fold = fold_events(CODEC, [(1, seen("main", "a")), (2, seen("main/b#1", "b"))])
    texts = {path: s.entries[0].parts[0].text for path, s in fold.surfaces.items()}
    assert texts == {"main": "a", "main/b#1": "b"}
    assert fold.surface("nobody") == Surface()


def test_a_message_may_take_its_content_from_an_earlier_event():
    came = ResponseCame(
        at=0.0, path="main", call=1, parts=(Text("said"),), stop_reason=None, usage=None
    )
    left = MessageLeftOut(
        at=0.0, path="main", role="tool", reason="orphan_result", parts=(Text("left"),)
    )
    fold = fold_events(CODEC, [(1, came), (2, left), (3, seen(same_as=1))])
    assert fold.surface("main").entries[0] == Entry(3, "user", (Text("said"),), is_request=True)


@pytest.mark.parametrize("source", [0, 1, 2, 3, 99])
def test_a_source_without_content_is_a_damaged_log(source):
    events = [(1, TurnBegan(at=0.0, path="main", turn=1)), (2, seen(same_as=source))]
    with pytest.raises(LogCorrupt, match=f"from event {source}"):
        fold_events(CODEC, events)


@pytest.mark.parametrize("seq", [0, 1, 3])
def test_an_event_out_of_turn_is_a_damaged_log(seq):
    fold = fold_events(CODEC, [(1, seen())])
    with pytest.raises(LogCorrupt):
        fold.apply(CODEC, seq, seen())


def test_a_header_stands_with_the_seq_of_its_event():
    header = HeaderSet(
        at=0.0, path="main", model="m", system=(), tools="", parameters="{}", changed=("model",)
    )
    surface = fold_events(CODEC, [(1, seen()), (2, header), (3, seen())]).surface("main")
    assert (surface.header, surface.header_seq, len(surface.entries)) == (header, 2, 2)
