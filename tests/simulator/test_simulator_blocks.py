import msgspec
from wire_prompts import ONE_PER_CHAR

from barograph.simulator.blocks import BlockReader, Memory


def raw(words):
    return msgspec.Raw(words)


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first():
    memory = Memory(2)
    for key in (b"a", b"b", b"c"):
        assert memory.put(key, key) == key
    assert [memory.get(key) for key in (b"a", b"b", b"c")] == [None, b"b", b"c"]


def test_the_same_json_is_read_once():
    reader = BlockReader(ONE_PER_CHAR)
    block = b'{"type":"text","text":"a"}'
    assert reader.block(raw(block)) is reader.block(raw(bytes(bytearray(block))))


def test_a_tool_and_a_block_of_the_same_json_are_different_things():
    reader = BlockReader(ONE_PER_CHAR)
    both = raw(b'{"type":"text","text":"a","name":"n"}')
    assert (reader.block(both).kind, reader.tool(both).kind) == ("text", "tool")


def test_a_marker_changes_nothing_but_the_marker():
    reader = BlockReader(ONE_PER_CHAR)
    bare = reader.block(raw(b'{"type":"text","text":"a"}'))
    marked = reader.block(raw(b'{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}'))
    assert marked == msgspec.structs.replace(bare, marker="5m")
