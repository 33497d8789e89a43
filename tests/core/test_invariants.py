"""The invariants of the design, each checked over random histories; its number is in the name.

What checks here is written apart from what it checks: pairing, markers, prefixes and learned
ratios are computed from request bodies and from nothing else.
"""

import itertools
import json
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
from histories import (
    MARKER,
    PRUNING,
    Call,
    Reconfigure,
    Restart,
    Rewind,
    Say,
    Trip,
    Work,
    blocks_of,
    client_body,
    compacting,
    growing_journeys,
    journeys,
    policies,
    stripped,
    travel,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from barograph.core.canonical import canonical_json, hash_body
from barograph.core.cuts import Pairing
from barograph.core.errors import LogCorrupt, SurfaceError
from barograph.core.events import (
    Compacted,
    Forked,
    HeaderSet,
    MessageSeen,
    Pruned,
    Replaced,
    RequestSent,
)
from barograph.core.ingest import Incoming
from barograph.core.inputs import Answered, CallWanted
from barograph.core.learning import learn, restore
from barograph.core.parts import Text, ToolCall, ToolResult, calls_in, encode_parts, results_in
from barograph.core.pressure import ratio_of
from barograph.core.readback import read_requests
from barograph.core.state import State
from barograph.core.surface import fold_events, marks_on, wire_messages
from barograph.providers.anthropic.codec import AnthropicCodec
from barograph.providers.anthropic.response import read_response
from barograph.providers.anthropic.weight import BLOCK_CHARS
from barograph.simulator import Reply, SimulatedProvider, Switches
from barograph.store import MemoryStore
from barograph.store.sqlite import SqliteStore

EXAMPLES = settings().max_examples
"""Of the profile: 100 as a rule, and more for who looks longer."""

many = settings(max_examples=EXAMPLES * 2 // 5)
some = settings(max_examples=EXAMPLES // 8)
few = settings(max_examples=EXAMPLES // 50)
codecs = st.sampled_from((AnthropicCodec(), AnthropicCodec(respell_arguments=True)))


def requests_of(trip):
    return list(read_requests(trip.codec, trip.events()))


def departures_of(trip):
    return [departure for made in trip.calls for departure in made.departures]


# 1: model-visible means logged


@many
@given(journeys(), codecs, policies)
def test_invariant_1_every_body_that_left_is_rebuilt_from_the_log_alone(moves, codec, policy):
    trip = travel(moves, codec=codec, policy=policy)
    requests = requests_of(trip)
    assert [request.exact for request in requests] == [d.body for d in departures_of(trip)]
    assert all(request.is_exact for request in requests)


@some
@given(journeys())
def test_invariant_1_the_record_is_durable_when_the_body_may_leave(moves):
    trip = travel(moves)
    events = dict(trip.events())
    for departure in departures_of(trip):
        record = events[departure.seq]
        assert isinstance(record, RequestSent)
        assert record.body_hash == hash_body(departure.body)
        last = list(
            read_requests(
                trip.codec,
                itertools.takewhile(
                    lambda logged, end=departure.seq: logged[0] <= end, trip.events()
                ),
            )
        )[-1]
        assert last.exact == departure.body


@many
@given(journeys(), codecs, policies)
def test_invariant_1_what_is_derived_means_what_left(moves, codec, policy):
    trip = travel(moves, codec=codec, policy=policy)
    for request, departure in zip(requests_of(trip), departures_of(trip), strict=True):
        if departure.client == "plain":
            assert request.derived == departure.body
            assert request.record.deviations == () or _only_heals(request.record)
        if departure.client in {"plain", "shuffled", "tooled"}:
            assert canonical_json(json.loads(request.derived)) == canonical_json(
                json.loads(departure.body)
            )
            assert request.record.mismatches == ()
        else:
            assert request.record.mismatches


def _only_heals(record):
    return all(deviation.text is None for deviation in record.deviations)


# 2: append-only


@many
@given(journeys())
def test_invariant_2_seqs_are_contiguous_and_nothing_logged_changes(moves):
    trip = Trip()
    before = []
    for move in moves:
        trip.play([move])
        now = trip.events()
        assert [seq for seq, _ in now] == list(range(1, len(now) + 1))
        assert now[: len(before)] == before
        before = now


def test_invariant_2_no_event_can_be_changed():
    trip = travel([Say("main", ("a",)), Call("main")])
    for _, event in trip.events():
        for name in event.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(event, name, None)


def test_invariant_2_a_log_with_a_gap_is_refused():
    events = travel([Say("main", ("a",)), Call("main")]).events()
    del events[2]
    with pytest.raises(LogCorrupt, match="Event 4 follows event 2"):
        fold_events(AnthropicCodec(), events)


# 3: pure surface


@many
@given(journeys(), codecs, policies)
def test_invariant_3_a_session_restored_from_its_log_is_the_live_one(moves, codec, policy):
    trip = travel([*moves, Restart()], codec=codec, policy=policy)
    for live, restored in trip.restarts:
        assert live == restored


@some
@given(journeys())
def test_invariant_3_a_round_trip_through_sqlite_gives_the_same_bytes(tmp_path_factory, moves):
    in_memory = travel(moves)
    store = SqliteStore(tmp_path_factory.mktemp("log") / "log.db")
    on_disk = travel(moves, store=store)
    assert on_disk.events() == in_memory.events()
    assert [(r.exact, r.derived) for r in requests_of(on_disk)] == [
        (r.exact, r.derived) for r in requests_of(in_memory)
    ]
    assert restore(on_disk.codec, on_disk.events()) == in_memory.session.state
    store.close()


ELSEWHERE = """
import sys
from pathlib import Path
from test_invariants import fingerprint
from barograph.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
for info in sorted(store.sessions(), key=lambda info: info.session):
    print(info.session, fingerprint(store.read(info.session)))
"""
PLACES = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0"},
    {"PYTHONHASHSEED": "4242", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns"},
)


def fingerprint(events):
    """All that is derived from a log: bodies, plans, and the whole restored state."""
    codec, events = AnthropicCodec(), list(events)
    state = blake2b(digest_size=16)
    for request in read_requests(codec, events):
        state.update(request.exact + request.derived + repr(request.plan).encode())
    state.update(described(restore(codec, events)))
    return state.hexdigest()


def described(state):
    """A state in words that depend on nothing but its content: sets are sorted."""
    paths = {
        name: (repr(replace(path, running=frozenset())), sorted(path.running))
        for name, path in state.paths.items()
    }
    return repr((state.fold, state.calls, paths)).encode()


@few
@given(st.lists(journeys(), min_size=4, max_size=6))
def test_invariant_3_another_process_under_another_hash_seed_derives_the_same(
    tmp_path_factory, many_moves
):
    path = tmp_path_factory.mktemp("log") / "log.db"
    store = SqliteStore(path)
    trips = [
        travel(moves, store=store, session=f"s{number}") for number, moves in enumerate(many_moves)
    ]
    here = "".join(f"{trip.id} {fingerprint(trip.events())}\n" for trip in trips)
    live = {trip.session.state == restore(trip.codec, trip.events()) for trip in trips}
    store.close()
    assert live == {True}
    for place in PLACES:
        environment = place | {"PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path])}
        there = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(path)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout == here


# 4: byte stability


@many
@given(journeys(), codecs, policies)
def test_invariant_4_a_request_begins_with_the_one_before_unless_the_log_says_why(
    moves, codec, policy
):
    trip = travel(moves, codec=codec, policy=policy)
    last, changed = {}, set()
    requests = {request.seq: request for request in requests_of(trip)}
    for seq, event in trip.events():
        if isinstance(event, Replaced | Pruned | Compacted):
            changed.add((event.path, "messages"))
        elif isinstance(event, HeaderSet):
            changed.add((event.path, "header"))
        elif isinstance(event, Forked) and event.of in last:
            last[event.path] = last[event.of]
            changed |= {(event.path, what) for path, what in changed if path == event.of}
        elif isinstance(event, RequestSent):
            blocks, *header = blocks_of(requests[seq].derived)
            if event.path in last:
                blocks_before, header_before = last[event.path]
                if (event.path, "messages") not in changed:
                    assert blocks[: len(blocks_before)] == blocks_before
                if (event.path, "header") not in changed:
                    assert header == header_before
            last[event.path] = (blocks, header)
            changed -= {(event.path, "messages"), (event.path, "header")}


@many
@given(growing_journeys())
def test_invariant_4_a_history_that_only_grows_replaces_nothing(moves):
    trip = travel(moves)
    assert not [event for _, event in trip.events() if isinstance(event, Replaced)]
    assert len([event for _, event in trip.events() if isinstance(event, HeaderSet)]) == 1


@many
@given(journeys(), codecs, st.data())
def test_invariant_4_marking_changes_no_other_byte(moves, codec, data):
    trip = travel(moves, codec=codec)
    made = data.draw(st.sampled_from(trip.calls))
    surface, marks = made.send.surface, made.send.breakpoints
    bare = list(wire_messages(codec, surface, ()))
    marked = list(wire_messages(codec, surface, marks))
    assert [stripped(message) for message in marked] == bare
    assert sum(len(MARKER.findall(message)) for message in marked) == sum(
        mark.level == "messages" for mark in marks
    )
    system = made.header.system
    some_marks = dict.fromkeys(data.draw(st.sets(st.integers(0, 3))), "1h")
    assert stripped(codec.render_system(system, some_marks) or b"") == (
        codec.render_system(system, {}) or b""
    )
    tools = made.header.tools
    assert stripped(codec.render_tools(tools, marks_on("tools", marks)) or b"") == (
        codec.render_tools(tools, {}) or b""
    )


@many
@given(journeys(), codecs)
def test_invariant_4_the_renderer_agrees_with_a_client_that_knows_nothing_of_it(moves, codec):
    trip = travel(moves, codec=codec)
    respell = codec.renderer == "anthropic-respelled/1"
    for made in trip.calls:
        rendered = b",".join(wire_messages(codec, made.send.surface, made.send.breakpoints))
        by_hand = client_body(made.send, trip.sides[made.move.path], respell=respell)
        assert b'"messages":[' + rendered + b"]" in by_hand


@many
@given(growing_journeys())
def test_invariant_m2_arguments_go_back_as_the_model_wrote_them(moves):
    trip = travel(moves, policy=None)  # the last call is to leave, with all that was written
    written = [move.arguments for move in moves if isinstance(move, Call)]
    sent = requests_of(trip)[-1].derived.decode()
    for arguments in itertools.chain(*written):
        call = ToolCall("", "look", arguments)
        assert trip.codec.sendable((call,))[0].arguments in ("{}", arguments)
        assert f'"input":{trip.codec.sendable((call,))[0].arguments},' in sent


# 5: pairing


def pairing_faults(body):
    """What the provider would refuse of the calls and results of a body. Written for this test."""
    turns = []
    for message in json.loads(body)["messages"]:
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(message["content"])
        else:
            turns.append((message["role"], list(message["content"])))
    faults, asked = [], []
    for role, content in [*turns, ("user", [])]:
        if role == "user":
            kinds = [block["type"] == "tool_result" for block in content]
            answers = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
            if sorted(answers) != sorted(asked):
                faults.append(f"asked {asked}, answered {answers}")
            if kinds != sorted(kinds, reverse=True):
                faults.append("a result after other content")
        asked = [b["id"] for b in content if b["type"] == "tool_use"] if role != "user" else []
        if len(set(asked)) != len(asked):
            faults.append(f"one id twice in {asked}")
    return faults


@many
@given(journeys(), codecs, policies)
def test_invariant_5_every_call_has_its_result_right_after_it_in_every_request(
    moves, codec, policy
):
    trip = travel(moves, codec=codec, policy=policy)
    for request in requests_of(trip):
        assert pairing_faults(request.derived) == []


@many
@given(journeys())
def test_invariant_5_no_request_holds_content_that_the_provider_refuses(moves):
    for request in requests_of(travel(moves)):
        messages = json.loads(request.derived)["messages"]
        for message in messages:
            assert message["content"]
            for block in message["content"]:
                assert block["type"] != "text" or block["text"].strip()
                assert block["type"] != "tool_use" or isinstance(block["input"], dict)


@many
@given(journeys())
def test_invariant_5_a_final_assistant_text_ends_without_white_space(moves):
    trip = travel([move for move in moves if not isinstance(move, Rewind)])
    for made in trip.calls:
        if any(isinstance(event, MessageSeen) for event in made.events):
            entries = made.send.surface.entries
            last = entries[-1]
            if last.role == "assistant" and isinstance(last.parts[-1], Text):
                assert last.parts[-1].text == last.parts[-1].text.rstrip()


# 6: what is hidden is not lost


@many
@given(journeys())
def test_invariant_6_every_part_that_was_shown_can_be_read_in_the_log(moves):
    trip = travel(moves)
    logged = {
        msgspec.json.encode(part)
        for _, event in trip.events()
        for part in (*getattr(event, "parts", ()), *getattr(event, "original", ()))
    }
    for side in trip.sides.values():
        for part in (part for past in side.past for message in past for part in message.parts):
            if not isinstance(part, ToolCall):  # a call is kept as the model wrote it
                # the provider refuses white space at the end of a final assistant message
                at_end = trip.codec.sendable((part,), prefill=True)
                for clean, cut in zip(trip.codec.sendable((part,)), at_end, strict=True):
                    assert not logged.isdisjoint(map(msgspec.json.encode, (clean, cut)))


# 7: legal markers


def markers_of(body):
    """Every marker in wire order: its lifetime, its block, characters and blocks to its end."""
    found, chars = [], 0
    fields = json.loads(body)
    rows = [fields.get("tools") or [], fields.get("system") or []]
    rows += [message["content"] for message in fields["messages"]]
    for count, block in enumerate(itertools.chain(*rows), 1):
        marker = block.pop("cache_control", None)
        chars += len(json.dumps(block, ensure_ascii=False, separators=(",", ":")))
        if marker is not None:
            found.append((marker["ttl"], block, chars, count))
    return found, chars


@many
@given(journeys(), policies)
def test_invariant_7_markers_are_at_most_four_eligible_and_long_before_short(moves, policy):
    trip = travel(moves, policy=policy)
    requests = {(r.record.path, r.record.call): r for r in requests_of(trip) if r.record.order}
    for made in trip.calls:
        request = requests.get((made.move.path, made.send.plan.call))
        if request is None:
            continue
        markers, _ = markers_of(request.derived)
        assert len(markers) + made.move.reserved <= max(4, made.move.reserved)
        assert len(markers) == len(made.send.breakpoints)
        assert all(block.get("type") not in {"thinking", "tool_use"} for _, block, *_ in markers)
        ttls = [ttl for ttl, *_ in markers]
        assert ttls == sorted(ttls, key=("1h", "5m").index)
        assert policy.lifetime == "auto" or set(ttls) <= {policy.entry_ttl}


@many
@given(journeys(), codecs)
def test_invariant_7_no_marker_is_below_the_minimum_by_the_learned_ratio(moves, codec):
    trip = travel(moves, codec=codec)
    state = State()
    bodies = {(r.record.path, r.record.call): r for r in requests_of(trip)}
    models = {(made.move.path, made.send.plan.call): made.header.model for made in trip.calls}
    for seq, event in trip.events():
        if isinstance(event, RequestSent):
            key = event.path, event.call
            markers, _ = markers_of(bodies[key].derived)
            least = codec.facts_of(models[key]).minimum_tokens
            ratio = ratio_of(state.factors, models[key])
            for _, _, chars, blocks in markers if event.order else ():
                # no block weighs more than its wire form and what any block weighs beside it
                assert (chars + BLOCK_CHARS * blocks) * ratio >= least
        state = learn(codec, state, seq, event)


@many
@given(growing_journeys(), policies)
def test_invariant_7_the_anchor_is_exactly_at_the_tail_written_last(moves, policy):
    trip = travel(moves, policy=policy)
    for before, after in itertools.pairwise(trip.calls):
        if any(isinstance(event, Pruned | Compacted) for event in after.events):
            continue  # what was written is no prefix any more
        tails = [m.block for m in before.send.breakpoints if m.slot == "tail"]
        now = {m.block for m in after.send.breakpoints if m.level == "messages"}
        assert set(tails) <= now
        written = before.departures[-1]
        assert tails
        assert written.body


@many
@given(growing_journeys(), codecs)
def test_invariant_6_what_a_pass_took_is_in_the_event_that_brought_it(moves, codec):
    trip = travel(moves, codec=codec, policy=PRUNING)
    events = dict(trip.events())
    for event in events.values():
        for stub in event.stubs if isinstance(event, Pruned) else ():
            seen = events[stub.seq]
            whole = seen.parts or events[seen.same_as].parts
            assert calls_in(stub.parts) == calls_in(whole)
            assert results_in(stub.parts) == results_in(whole)
            assert len(encode_parts(stub.parts)) < len(encode_parts(whole))


@many
@given(growing_journeys(), codecs)
def test_invariant_8_a_pass_makes_the_request_smaller_by_the_measure_that_called_for_it(
    moves, codec
):
    trip = travel(moves, codec=codec, policy=PRUNING)
    for made in trip.calls:
        passes = [event for event in made.events if isinstance(event, Pruned)]
        assert len(passes) <= 1
        for event in passes:
            assert made.send.plan.projected_tokens < event.tokens_before


@many
@given(growing_journeys(), codecs)
def test_invariant_9_the_newest_round_is_never_pruned(moves, codec):
    trip = travel(moves, codec=codec, policy=PRUNING)
    events = dict(trip.events())
    for made in trip.calls:
        newest = [e for e in made.events if isinstance(e, MessageSeen)]
        pruned = [e for e in made.events if isinstance(e, Pruned)]
        taken = {stub.seq for event in pruned for stub in event.stubs}
        assert not [events[seq] for seq in taken if events[seq] in newest]


@many
@given(journeys(), codecs, compacting)
def test_invariant_6_all_that_a_summary_hides_is_in_the_log(moves, codec, policy):
    trip = travel(moves, codec=codec, policy=policy)
    events = dict(trip.events())
    shown = {}
    for made in trip.calls:
        for entry in made.planned.surface(made.move.path).entries:
            if not entry.hides:
                shown[entry.seq] = encode_parts(entry.parts)
    for path in trip.session.state.paths:
        for entry in trip.session.state.surface(path).entries:
            for seq in entry.hides:
                seen = events[seq]
                assert isinstance(seen, MessageSeen)
                whole = seen.parts or events[seen.same_as].parts
                assert shown.get(seq, encode_parts(whole)) == encode_parts(whole)


@many
@given(growing_journeys(), codecs, compacting)
def test_invariant_8_a_compaction_makes_the_request_smaller(moves, codec, policy):
    trip = travel(moves, codec=codec, policy=policy)
    for made in trip.calls:
        folds = [event for event in made.events if isinstance(event, Compacted)]
        assert len(folds) <= 2
        for event in folds:
            assert event.tokens_after < event.tokens_before
        if folds:
            assert made.send.plan.projected_tokens < folds[0].tokens_before


@many
@given(journeys(), codecs, compacting)
def test_invariant_9_the_current_request_and_the_newest_round_stay(moves, codec, policy):
    trip = travel(moves, codec=codec, policy=policy)
    events = dict(trip.events())
    for made in trip.calls:
        folds = [event for event in made.events if isinstance(event, Compacted)]
        if not folds:
            continue
        entries = list(made.planned.surface(made.move.path).entries)
        hidden = {seq for entry in entries for seq in entry.hides}
        seen = {unit.seq: events[unit.seq] for unit in made.planned.path(made.move.path).seen}
        spoken = {seq: e for seq, e in seen.items() if isinstance(e, MessageSeen)}
        request = max((q for q, e in spoken.items() if e.origin == "caller"), default=0)
        answered = max((q for q, e in spoken.items() if e.role == "assistant"), default=0)
        assert request not in hidden
        assert answered < request or hidden.isdisjoint(q for q in spoken if q >= answered)


# B3: the one operation


def _long_trip():
    return travel(
        [
            Say("main", ("begin",)),
            *(
                move
                for _ in range(4)
                for move in (
                    Call("main", arguments=("{}", "{}"), usage="none"),
                    Work("main", ("plain",)),
                )
            ),
            Call("main"),
        ]
    )


LONG = _long_trip()


@many
@given(st.data())
def test_invariant_b3_a_replacement_at_legal_cuts_is_atomic_and_keeps_pairing(data):
    fold, codec = LONG.session.state.fold, LONG.codec
    entries = fold.surface("main").entries
    cuts = Pairing().cuts(entries.span())
    start, stop = sorted(data.draw(st.tuples(*[st.sampled_from(cuts)] * 2)))
    seqs = tuple(entry.seq for entry in entries.span(start, stop))
    event = Replaced(
        at=0.0,
        path="main",
        shadows=seqs,
        cause="fold",
        planned=True,
        role="user" if seqs else None,
        parts=(Text("summary"),) if seqs else (),
    )
    after = fold.apply(codec, fold.seq + 1, event).surface("main")
    kept = [e.parts for e in entries.span(0, start)], [e.parts for e in entries.span(stop)]
    middle = [event.parts] if seqs else []
    assert [entry.parts for entry in after.entries] == [*kept[0], *middle, *kept[1]]
    again = fold_events(codec, [])
    rebuilt = again.surface("main")
    for entry in after.entries:
        rebuilt = rebuilt.appended(codec, entry)
    assert (rebuilt.entries, rebuilt.segments, rebuilt.messages) == (
        after.entries,
        after.segments,
        after.messages,
    )
    assert b"".join(wire_messages(codec, after, ())).count(b'"summary"') == len(middle)


@many
@given(st.lists(st.integers(0, 40), max_size=6), st.booleans())
def test_invariant_b3_a_citation_that_is_not_one_whole_run_is_refused_and_changes_nothing(
    cited, with_role
):
    fold, codec = LONG.session.state.fold, LONG.codec
    seqs = [entry.seq for entry in fold.surface("main").entries]
    text = "".join(f",{seq}" for seq in seqs) + ","
    is_run = bool(cited) and "".join(f",{seq}" for seq in cited) + "," in text
    event = Replaced(
        at=0.0,
        path="main",
        shadows=tuple(cited),
        cause="fold",
        planned=True,
        role="user" if with_role else None,
        parts=(Text("x"),) if with_role else (),
    )
    before = repr(fold)
    if is_run or (not cited and not with_role):
        return
    with pytest.raises(SurfaceError):
        fold.apply(codec, fold.seq + 1, event)
    assert repr(fold) == before
    assert fold == restore(codec, LONG.events()).fold


@pytest.mark.parametrize("skip", [0, 1])
def test_invariant_b3_a_run_that_parts_a_call_from_its_result_is_refused(skip):
    fold, codec = LONG.session.state.fold, LONG.codec
    entries = fold.surface("main").entries.span()
    place = next(i for i, entry in enumerate(entries) if entry.role == "tool") + skip
    event = Replaced(at=0.0, path="main", shadows=(entries[place].seq,), cause="fold", planned=True)
    with pytest.raises(SurfaceError, match="no result"):
        fold.apply(codec, fold.seq + 1, event)


# B9: values that stay as they are


@some
@given(journeys())
def test_invariant_b9_nothing_derived_can_be_changed(moves):
    trip = travel(moves)
    before = trip.events()
    values = [trip.calls[-1].send, trip.calls[-1].send.surface, *requests_of(trip)[:1]]
    values += trip.calls[-1].send.surface.entries.span()[:3]
    values += [part for entry in trip.calls[-1].send.surface.entries for part in entry.parts][:3]
    for value in values:
        for name in value.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(value, name, None)
    for made in trip.calls:
        made.send.surface.entries.span().clear()
        with pytest.raises(TypeError):
            made.send.surface.entries[0:1] = []
        assert isinstance(made.send.breakpoints, tuple)
    assert trip.events() == before


def test_invariant_b9_an_older_state_stays_as_it_was_whatever_follows():
    trip = travel([Say("main", ("a",)), Call("main", outcome="unsent")])
    old, seen = trip.session.state, repr(trip.session.state)
    trip.play([Say("main", ("b",)), Call("main"), Rewind("main", 0), Call("main")])
    assert repr(old) == seen
    # and it can still be stepped from, on a line of its own
    for text in ("c", "d"):
        wanted = CallWanted(
            at=5.0,
            path="main",
            header=trip.calls[0].header,
            messages=(Incoming("user", (Text(text),)),),
            known=1,
        )
        forked, _ = trip.engine.step(old, wanted)
        assert [e.parts for e in forked.surface("main").entries] == [(Text("a"),), (Text(text),)]
        assert repr(old) == seen


# C: one planner, driven against a provider with the real cache rules


class Provided:
    """A session driven against the simulated provider, call by call."""

    def __init__(self, rounds, *, switches=None):
        self.trip = Trip(store=MemoryStore())
        self.provider = SimulatedProvider(switches=switches)
        self.provider.play("s", self._model)
        self.rounds = rounds

    def _model(self, _request, index):
        wide = self.rounds[index] if index < len(self.rounds) else 0
        calls = [
            {"type": "tool_use", "id": f"c{index}-{n}", "name": "look", "input": {"n": n}}
            for n in range(wide)
        ]
        return Reply(content=[{"type": "text", "text": f"round {index}"}, *calls])

    def run(self):
        """Play all rounds; gives the usage and what was expected to be read, call by call."""
        trip, told = self.trip, []
        trip.play([Say("main", ("begin",))])
        for _ in range(len(self.rounds) + 1):
            trip.play([Call("main", outcome="abandon")])
            made = trip.calls[-1]
            body = made.departures[-1].body
            exchange = self.provider.handle(
                body, {"x-sim-session": "s", "x-sim-now": str(trip.at), "x-api-key": "k"}
            )
            assert exchange.status == 200, exchange.response
            answer = read_response(exchange.response, streamed=False)
            trip.session.take(
                Answered(
                    at=trip.at,
                    path="main",
                    parts=answer.parts,
                    stop_reason=answer.stop_reason,
                    usage=answer.usage,
                )
            )
            plan = trip.session.state.path("main").planned
            told.append((answer.usage, plan.expected_read_tokens))
            trip._add("main", "assistant", *answer.parts)
            for part in answer.parts:
                if isinstance(part, ToolCall):
                    trip._add("main", "tool", ToolResult(part.id, (Text(f"result {part.id}"),)))
        return told


SWITCHES = (Switches(), Switches(collapse_runs=False))


@pytest.mark.parametrize("start", range(1, 101, 10))
def test_invariant_c3_c4_the_next_call_reads_all_of_a_round_of_any_width(start):
    for wide in range(start, start + 10):
        for switches in SWITCHES:
            told = Provided([wide, wide], switches=switches).run()
            for (before, _), (after, expected) in itertools.pairwise(told):
                assert after.read_tokens == before.read_tokens + before.write_tokens == expected
                assert after.uncached_tokens == 0


@some
@given(st.lists(st.sampled_from((0, 1, 3, 19, 20, 21, 40)), min_size=1, max_size=7))
def test_invariant_c1_c3_rounds_of_changing_width_are_read_in_full(rounds):
    for (before, _), (after, expected) in itertools.pairwise(Provided(rounds).run()):
        assert after.read_tokens == before.read_tokens + before.write_tokens == expected
        assert after.uncached_tokens == 0


def test_invariant_c2_the_header_is_marked_where_tools_and_system_end():
    trip = travel([Say("main", ("a",)), Call("main"), Reconfigure("main", "system", 2)])
    first = trip.calls[0].send.breakpoints[0]
    assert (first.slot, first.level, first.block) == ("header", "system", 1)


def test_invariant_c6_a_block_looks_the_same_with_and_without_its_marker():
    codec = AnthropicCodec()
    blocks = [codec.block(Text(text)).text for text in "xy"]
    bare = b'{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}'
    assert codec.render_message("user", blocks, {}) == bare
    assert codec.render_message("user", blocks, {1: "1h"}) == bare.replace(
        b'"y"}', b'"y","cache_control":{"type":"ephemeral","ttl":"1h"}}'
    )
    assert stripped(codec.render_message("user", blocks, {0: "5m", 1: "1h"})) == bare


def test_invariant_c7_a_prompt_below_the_minimum_gets_no_marker():
    trip = Trip()
    trip.sides["main"].header = replace(
        trip.sides["main"].header, system=(Text("short"),), tools=""
    )
    trip.play([Say("main", ("hi",)), Call("main")])
    assert trip.calls[0].send.breakpoints == ()
    trip.play([Say("main", ("long " * 1200,)), Call("main", usage="none")])
    assert [mark.slot for mark in trip.calls[1].send.breakpoints] == ["tail"]
