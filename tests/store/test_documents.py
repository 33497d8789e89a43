"""Documents: whole or not at all, found within scope, never trusted more, forgotten to the byte."""

import sqlite3
from array import array
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabulary import message

from barograph.core.errors import StoreUnavailable, UnknownDocument, UsageError
from barograph.core.passages import MOST_CHARS
from barograph.core.recall import Scope
from barograph.core.trust import lower, reaches
from barograph.store import SqliteStore
from barograph.store.fulltext import pack_text
from barograph.store.knowledge import NewDocument
from barograph.store.search import Document, archive_of

TRUSTS = ("operator", "derived", "external")
ALL = Scope()


def add(store, text, at=1.0, **more):
    return store.index.documents.add(NewDocument(text=text, **more), at=at)


def found(store, query, limit=10, **scope):
    return store.index.passages.match(query, Scope(**scope), limit)


def origins(store, query, **scope):
    return [item.origin for item in found(store, query, **scope)]


def entry(store, name):
    return store.index.documents.find(name)


# What goes in


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_no_added_text_is_lost(new_store, text):
    store = new_store()
    text += "\n\nend" * 700
    added = add(store, text)
    passages = store.index.documents.read(added.id)
    assert "".join(passages) == text
    assert max(map(len, passages)) <= MOST_CHARS
    assert entry(store, added.id).passages == len(passages) > 1


def test_what_is_known_of_a_document_is_listed(store):
    added = add(
        store, "Rotate keys.", at=5.0, namespace="ops", origin="keys.md", domain="security",
        date="2026-01-31", trust="operator",
    )  # fmt: skip
    (one,) = store.index.documents.entries()
    assert added.outcome == "added"
    assert (one.id, one.namespace, one.origin, one.domain) == (
        added.id,
        "ops",
        "keys.md",
        "security",
    )
    assert (one.date, one.trust, one.added_at) == ("2026-01-31", "operator", 5.0)
    assert (one.chars, one.passages, one.superseded_by) == (12, 1, "")


def test_the_id_is_the_same_in_every_store(new_store):
    assert len({add(new_store(), "text", origin="a").id for _ in range(2)}) == 1
    store = new_store()
    names = [add(store, "text", namespace=n, origin=o).id for n in "ab" for o in ("a", "b", "")]
    assert len({*names, add(store, "text.").id}) == 7


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"text": ""}, "no text"),
        ({"text": " \n\t"}, "no text"),
        ({"text": "a\ud800b"}, "lone surrogate"),
        ({"text": "a", "origin": "\udfff"}, "lone surrogate"),
        ({"text": "a", "namespace": ""}, "namespace"),
        ({"text": "a", "date": "yesterday"}, "no date"),
        ({"text": "a", "date": "2026-13-01"}, "no date"),
        ({"text": "a", "trust": "mine"}, "trust"),
    ],
    ids=range(8),
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(store, bad, words):
    with pytest.raises(UsageError, match=words) as refused:
        add(store, **bad)
    assert refused.value.next_step
    assert store.index.documents.entries(with_superseded=True) == []


def test_a_document_enters_whole_or_not_at_all(sqlite, monkeypatch):
    from barograph.store import knowledge

    add(sqlite, "before", origin="a")
    puts, real = [], knowledge.insert_row

    def fails(*args):
        puts.append(args)
        if len(puts) == 3:
            raise sqlite3.OperationalError("disk I/O error")
        real(*args)

    monkeypatch.setattr(knowledge, "insert_row", fails)
    with pytest.raises(StoreUnavailable):
        add(sqlite, "after. " * 2000, origin="a")
    monkeypatch.undo()
    assert len(puts) == 3
    assert [one.origin for one in sqlite.index.documents.entries()] == ["a"]
    assert found(sqlite, "after") == ()
    assert origins(sqlite, "before") == ["a"]


@pytest.mark.parametrize("text", ["\0 nul word", '"word" OR (NEAR * ^', "word\r\n", "\ufffeword"])
def test_hostile_text_is_kept_as_it_is_and_found(store, text):
    assert store.index.documents.read(add(store, text).id) == (text,)
    assert [item.text for item in found(store, "word")] == [text.strip("\n")]


def test_ten_million_characters_are_taken_in(sqlite):
    text = "".join(f"Line {number} of a long book.\n" for number in range(350_000))
    added = add(sqlite, text)
    assert "".join(sqlite.index.documents.read(added.id)) == text
    assert "Line 349999 " in found(sqlite, "349999")[0].text


def test_archives_and_documents_see_nothing_of_each_other(store):
    store.append("s", [message("hi")], after=0)
    store.index.add([Document(namespace=archive_of("s"), key="1", text="same words")])
    add(store, "same words", origin="doc", namespace=archive_of("s"))
    assert origins(store, "same") == ["doc"]
    assert [hit.key for hit in store.index.search((archive_of("s"),), "same")] == ["1"]
    store.delete("s")
    assert origins(store, "same") == ["doc"]


# Versions


def test_another_text_of_an_origin_takes_the_place_of_the_one_before(store):
    first = add(store, "the old rule", origin="rules.md")
    second = add(store, "the new rule", origin="rules.md")
    assert second.superseded == (first.id,)
    assert [item.text for item in found(store, "rule")] == ["the new rule"]
    assert [one.id for one in store.index.documents.entries()] == [second.id]
    every = store.index.documents.entries(with_superseded=True)
    assert [(one.id, one.superseded_by) for one in every] == [
        (first.id, second.id),
        (second.id, ""),
    ]
    assert store.index.documents.read(first.id) == ("the old rule",)


def test_a_text_that_comes_back_stands_again(store):
    first = add(store, "one rule", origin="rules.md")
    second = add(store, "two rule", origin="rules.md")
    again = add(store, "one rule", origin="rules.md")
    assert (again.id, again.outcome, again.superseded) == (first.id, "changed", (second.id,))
    assert [item.text for item in found(store, "rule")] == ["one rule"]


def test_one_that_another_origin_replaced_stays_replaced_when_it_is_added_again(store):
    old = add(store, "rule of 2025", origin="2025.md")
    new = add(store, "rule of 2026", origin="2026.md", supersedes=old.id)
    assert new.superseded == (old.id,)
    assert add(store, "rule of 2025", origin="2025.md").outcome == "unchanged"
    assert add(store, "rule of 2026", origin="2026.md").outcome == "unchanged"
    add(store, "rule of 2025, mended", origin="2025.md")
    assert origins(store, "rule") == ["2026.md"]


def test_texts_without_an_origin_stand_beside_each_other(store):
    first, second = add(store, "one rule"), add(store, "two rule")
    assert len(found(store, "rule")) == 2
    third = add(store, "three rule", supersedes=first.id)
    assert add(store, "one rule").outcome == "unchanged"
    assert {one.id for one in store.index.documents.entries()} == {second.id, third.id}


def test_the_same_origin_in_another_namespace_is_another_document(store):
    add(store, "one rule", origin="a", namespace="x")
    assert add(store, "two rule", origin="a", namespace="y").superseded == ()
    assert len(found(store, "rule")) == 2


@pytest.mark.parametrize("wanted", ["nothing", "itself"])
def test_only_another_document_that_is_there_can_be_superseded(store, wanted):
    one = add(store, "one rule", origin="a")
    with pytest.raises(UnknownDocument):
        add(store, "one rule", origin="a", supersedes=one.id if wanted == "itself" else wanted)


VERSIONS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y", ""]), st.integers(0, 3)),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(VERSIONS)
def test_what_was_added_last_stands_unless_something_else_replaced_it(new_store, steps):
    store = new_store()
    ids = []
    for text, origin, choice in steps:
        before = {one.id: one for one in store.index.documents.entries(with_superseded=True)}
        target = ids[choice % len(ids)] if ids and choice == 3 else ""
        try:
            added = add(store, f"rule {text}", origin=origin, supersedes=target)
        except UnknownDocument:
            continue
        ids.append(added.id)
        after = {one.id: one for one in store.index.documents.entries(with_superseded=True)}
        assert set(before) <= set(after)
        mine = after[added.id]
        if target:
            assert not mine.superseded_by
            assert after[target].superseded_by == added.id
        for one in after.values():
            if one.id != mine.id and origin and one.origin == origin:
                assert one.superseded_by, "two versions of an origin stand"
        assert any(not one.superseded_by for one in after.values())


# Trust


SAYINGS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from([*TRUSTS, None])),
    min_size=1,
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(SAYINGS)
def test_invariant_11_trust_of_a_text_never_rises(new_store, steps):
    store, lowest = new_store(), {}
    for text, namespace, trust in steps:
        said = trust or lowest.get(text, "external")
        lowest[text] = lower(lowest.get(text, said), said)
        added = add(store, f"rule {text}", namespace=namespace, origin=text, trust=trust)
        assert added.trust == lowest[text]
        for item in found(store, "rule"):
            assert item.trust == lowest[item.origin]


def test_invariant_11_that_a_text_is_the_operators_must_be_said(store):
    assert add(store, "one").trust == "external"
    assert add(store, "two", trust="operator").trust == "operator"
    assert add(store, "two").trust == "operator"
    assert add(store, "one", trust="operator").trust == "external"


def test_invariant_11_nothing_takes_the_place_of_what_is_trusted_more(store):
    rule = add(store, "our rule", origin="rules.md", trust="operator")
    for more in ({"origin": "rules.md"}, {"origin": "b.md", "supersedes": rule.id}):
        with pytest.raises(UsageError, match="trusted as operator") as refused:
            add(store, "their rule", **more)
        assert "Say how far" in refused.value.next_step
    assert [item.text for item in found(store, "rule")] == ["our rule"]
    add(store, "our rule 2", origin="rules.md", trust="operator")
    assert [item.text for item in found(store, "rule")] == ["our rule 2"]


# Finding

SCOPED = st.lists(
    st.tuples(st.sampled_from("pqr"), st.sampled_from(["", "law"]), st.sampled_from(TRUSTS)),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    SCOPED,
    st.sampled_from(TRUSTS),
    st.none() | st.lists(st.sampled_from("pqrs"), max_size=2),
    st.none() | st.lists(st.sampled_from(["", "law", "\ud800"]), max_size=2),
)
def test_all_in_scope_is_found_and_nothing_else(new_store, docs, floor, namespaces, domains):
    store = new_store()
    for number, (namespace, domain, trust) in enumerate(docs):
        add(
            store,
            f"rule {number}",
            origin=f"{number}",
            namespace=namespace,
            domain=domain,
            trust=trust,
        )
    vectors = {key: [1.0, 0.0] for key in store.index.passages.without_vector("m", 100)}
    store.index.passages.put_vectors("m", vectors)
    scope = Scope(
        floor=floor,
        namespaces=None if namespaces is None else tuple(namespaces),
        domains=None if domains is None else tuple(domains),
    )
    expected = {
        f"{number}"
        for number, (namespace, domain, trust) in enumerate(docs)
        if reaches(trust, floor)
        and (namespaces is None or namespace in namespaces)
        and (domains is None or domain in domains)
    }
    by_words = store.index.passages.match("rule", scope, 100)
    by_vector = store.index.passages.nearest([1.0, 0.0], model="m", scope=scope, limit=100)
    assert {item.origin for item in by_words} == expected
    assert {item.origin for item in by_vector} == expected


def test_what_is_out_of_scope_takes_no_place_from_what_is_in_it(store):
    for number in range(60):
        add(store, f"rule rule rule {number}", origin=f"{number}")
    add(store, "a rule among many other words of ours", origin="ours", trust="operator")
    assert origins(store, "rule", limit=1, floor="operator") == ["ours"]


def test_passages_with_more_of_the_words_come_first(store):
    add(store, "keys are rotated every month", origin="both")
    add(store, "keys of a piano", origin="one")
    add(store, "nothing of the kind", origin="none")
    assert origins(store, "How often are keys rotated?") == ["both", "one"]
    assert origins(store, "rotat") == ["both"]
    assert [item.score for item in found(store, "keys rotated")] == sorted(
        (item.score for item in found(store, "keys rotated")), reverse=True
    )


@pytest.mark.parametrize("query", ["", '"', "NEAR(", "*", "\0", "\ud800", "{words} : n1", "?!"])
def test_no_query_has_operators(store, query):
    add(store, "quiet")
    assert found(store, query) == ()


def test_equal_passages_are_given_once(store):
    for name in "abc":
        add(store, "the licence", origin=name)
    assert origins(store, "licence") == ["a"]


def test_equal_passages_take_no_place_from_others(store):
    for number in range(60):
        add(store, "the licence", origin=str(number))
    add(store, "the licence of something else, said in a text that is a little longer")
    assert len(found(store, "licence", 2)) == 2
    missing = store.index.passages.without_vector("m", 100)
    store.index.passages.put_vectors(
        "m", {row: (1.0, float(len(text) > 20)) for row, text in missing.items()}
    )
    near = store.index.passages.nearest((1.0, 0.0), model="m", scope=Scope(), limit=2)
    assert len(near) == 2


def test_an_item_says_where_it_is_from(store):
    added = add(store, "# Keys\n\nRotate.\n", origin="k.md", domain="d", date="2026-01-01")
    (item,) = found(store, "rotate")
    assert (item.id, item.text) == (f"{added.id}.1", "# Keys\n\nRotate.")
    assert (item.origin, item.domain, item.date) == ("k.md", "d", "2026-01-01")
    assert item.trust == "external"
    assert item.score > 0


# Vectors


def test_vectors_find_what_points_the_same_way_with_one_model_alone(store):
    for name in "ab":
        add(store, f"text {name}", origin=name)
    numbers = store.index.passages.without_vector("m", 10)
    assert list(numbers.values()) == ["text a", "text b"]
    store.index.passages.put_vectors("m", dict(zip(numbers, ([3.0, 0.0], [2.0, 2.0]), strict=True)))
    near = store.index.passages.nearest([5.0, 0.0], model="m", scope=ALL, limit=2)
    assert [(item.origin, round(item.score, 3)) for item in near] == [("a", 1.0), ("b", 0.707)]
    assert store.index.passages.nearest([5.0, 0.0], model="other", scope=ALL, limit=2) == ()
    assert store.index.passages.without_vector("m", 10) == {}
    assert len(store.index.passages.without_vector("other", 1)) == 1


def test_a_vector_that_is_not_finite_is_refused(store):
    with pytest.raises(UsageError, match="not finite"):
        store.index.passages.put_vectors("m", {1: [float("nan")]})


def test_a_passage_that_is_gone_gets_no_vector(store):
    added = add(store, "text")
    (number,) = store.index.passages.without_vector("m", 10)
    store.index.documents.forget([added.id])
    store.index.passages.put_vectors("m", {number: [1.0]})
    assert store.index.passages.nearest([1.0], model="m", scope=ALL, limit=1) == ()


# Forgetting


WORDS = st.text("klmnop", min_size=7, max_size=12).map("zq{}zq".format)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(WORDS, WORDS, st.booleans())
def test_what_is_forgotten_leaves_no_byte_in_the_file(tmp_path, word, name, has_version):
    path = tmp_path / "k.db"
    path.unlink(missing_ok=True)
    store = SqliteStore(path)
    add(store, "what is kept", origin="kept")
    more = {"origin": name, "domain": name, "namespace": name}
    added = [add(store, f"A secret: {word}. " * 40, **more).id]
    if has_version:
        added.append(add(store, f"Another: {word}.", **more).id)
    first, *rest = store.index.passages.without_vector("m", 10)
    store.index.passages.put_vectors("m", {first: [1.0, 0.0]})
    store.index.passages.put_vectors("m", {key: [0.0] * 7 + [3.0, 4.0] for key in rest})
    vector = array("f", [0.6, 0.8]).tobytes()
    packed = [row[0] for row in store._fetch_all("SELECT text FROM search_documents WHERE id > 1")]
    store._fetch_all("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    traces = [word.encode(), name.encode(), vector, *packed, *(one.encode() for one in added)]
    assert all(trace in before for trace in traces)
    assert store.index.documents.forget(added) == len(added)
    after = b"".join(file.read_bytes() for file in sorted(tmp_path.glob("k.db*")))
    assert [trace for trace in traces if trace in after] == []
    assert origins(store, "kept secret") == ["kept"]
    store.close()


def test_what_was_replaced_is_not_found_again_when_its_successor_is_forgotten(store):
    first = add(store, "one rule", origin="a")
    second = add(store, "two rule", origin="a")
    assert store.index.documents.forget([second.id, "unknown"]) == 1
    assert found(store, "rule") == ()
    assert entry(store, first.id).superseded_by == second.id
    third = add(store, "three rule", origin="a")
    assert third.superseded == (first.id,)
    assert origins(store, "rule") == ["a"]


def test_a_version_in_the_middle_can_be_forgotten(store):
    first, second, third = (add(store, f"{number} rule", origin="a").id for number in range(3))
    store.index.documents.forget([second])
    assert entry(store, first).superseded_by == third
    assert len(found(store, "rule")) == 1


def test_invariant_11_what_is_trusted_more_is_found_again_when_its_successor_is_trusted_less(store):
    rule = add(store, "Rotate keys weekly.", origin="keys.md", trust="operator")
    later = add(store, "Rotate keys daily.", origin="keys.md", trust="operator")
    assert entry(store, rule.id).superseded_by == later.id

    add(store, "Rotate keys daily.", namespace="mail", origin="a letter", trust="external")

    assert entry(store, later.id).trust == "external"
    assert entry(store, rule.id).superseded_by == ""


def test_forgetting_allows_a_text_to_be_trusted_anew(store):
    added = add(store, "rule", trust="external")
    store.index.documents.forget([added.id])
    assert add(store, "rule", trust="operator").trust == "operator"


# The store beneath


def test_a_document_is_found_by_the_beginning_of_its_id(store):
    first = add(store, "one")
    assert entry(store, first.id[:6]).id == first.id
    for wanted in ("", "xyz", "\ud800"):
        with pytest.raises(UnknownDocument) as refused:
            entry(store, wanted)
        assert "knowledge list" in refused.value.next_step


def test_a_store_without_documents_is_asked_in_vain(store):
    assert found(store, "rule") == ()
    assert store.index.documents.entries() == []
    assert store.index.documents.forget(["x"]) == 0
    assert store.index.documents.read("x") == ()
    assert store.index.passages.without_vector("m", 1) == {}
    assert store.index.passages.nearest([1.0], model="m", scope=ALL, limit=1) == ()


def test_documents_survive_in_the_file(sqlite, path):
    add(sqlite, "rule", origin="a")
    sqlite.close()
    again = SqliteStore(path)
    assert origins(again, "rule") == ["a"]
    again.close()


def test_an_index_made_anew_keeps_whole_documents_and_drops_one_that_is_damaged(sqlite, path):
    kept, lost = add(sqlite, "kept rule", origin="a"), add(sqlite, "lost rule. " * 400, origin="b")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE search_documents SET text = x'00' WHERE key = ?", (f"{lost.id}.2",))
    other.execute("DELETE FROM search_words_data")
    other.close()
    with pytest.raises(StoreUnavailable, match="index"):
        found(sqlite, "rule")
    sqlite.index.reset()
    assert origins(sqlite, "rule") == ["a"]
    assert [one.id for one in sqlite.index.documents.entries()] == [kept.id]
    add(sqlite, "lost rule. " * 400, origin="b")
    assert set(origins(sqlite, "rule")) == {"a", "b"}


def test_documents_whose_text_is_not_whole_are_told_before_they_are_dropped(sqlite, path):
    add(sqlite, "whole rule", origin="a")
    for origin in "bcd":
        add(sqlite, f"rule {origin}. " * 400, origin=origin)
    documents = sqlite.index.documents
    names = {one.origin: one.id for one in documents.entries()}
    assert documents.incomplete() == []
    altered = pack_text("another text")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        said = "UPDATE search_documents SET text = ? WHERE key = ?"
        other.execute(said, (b"\0", f"{names['b']}.1"))
        other.execute("DELETE FROM search_documents WHERE key = ?", (f"{names['c']}.2",))
        other.execute(said, (altered, f"{names['d']}.2"))
    assert [one.origin for one in documents.incomplete()] == ["b", "c", "d"]
    assert len(documents.entries()) == 4
    sqlite.index.reset()
    assert [one.origin for one in documents.entries()] == ["a"]
    assert documents.incomplete() == []


def test_no_vector_is_left_of_a_passage_that_was_damaged(sqlite, path):
    lost = add(sqlite, "lost rule", origin="a")
    sqlite.index.passages.put_vectors("m", {passage: [1.0] for passage in (1, 2)})
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE search_documents SET text = x'00' WHERE source = ?", (lost.id,))
        sqlite.index.reset()
        assert other.execute("SELECT count(*) FROM knowledge_vectors").fetchone() == (0,)
