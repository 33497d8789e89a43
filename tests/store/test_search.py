"""The one full-text index: what was put in is found by its words, and nothing else is."""

import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vocabulary import message

from barograph.core.errors import StoreBusy, StoreUnavailable, UsageError
from barograph.store import SqliteStore, fulltext
from barograph.store.search import MOST_HITS, SNIPPET_CHARS, Document, archive_of
from barograph.store.words import snippet_of, words_in


def doc(key, text, namespace="n", **more):
    return Document(namespace=namespace, key=key, text=text, **more)


def keys(index, query, *namespaces, limit=10):
    return [hit.key for hit in index.search(namespaces or ("n",), query, limit)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("see src/foo/bar_baz.py, line 3", "src/foo/bar_baz.py"),
        ("see src/foo/bar_baz.py, line 3", "bar_baz"),
        ("see src/foo/bar_baz.py, line 3", "baz.py"),
        ("it failed with ERR-4711.", "ERR-4711"),
        ("it failed with ERR-4711.", "err-47"),
        ("a compaction of the history", "compact"),
        ("我们在东京开会", "东京"),
        ("我们在东京开会", "京"),
        ("会議は東京で行われます", "東京で行"),
        ("데이터베이스를 옮겼다", "베이스"),
        ("ที่อยู่ของลูกค้า", "ลูกค้า"),
        ("Un CAFÉ à Zürich", "cafe zurich"),
        ("STRASSE", "straße"),
        ("x" * 500, "x" * 500),
        ("x" * 500, "x" * 70),
    ],
    ids=range(15),
)
def test_paths_ids_beginnings_and_parts_of_cjk_are_found(store, text, query):
    store.index.add([doc("other", "nothing of the kind"), doc("it", text)])
    assert keys(store.index, query) == ["it"]


ASKED = (
    "", " ", '"', '""', "'", "*", "^", "-", "(", ")", ":", "{words}", "words:", "namespace : n1",
    "NEAR(a b)", "a AND", "OR", "NOT a", "a\0b", "\0", "\ud800", "x\udfff", "!?;.,", "x" * 100_000,
    "a " * 50_000, "%", "_", ";DROP TABLE meta", "\u0301", "n1",
)  # fmt: skip


@pytest.mark.parametrize("query", ASKED, ids=range(len(ASKED)))
def test_no_query_raises_and_none_has_operators(store, query):
    store.index.add([doc("k", "quiet")])
    assert keys(store.index, query) == []


@pytest.mark.parametrize("text", ASKED, ids=range(len(ASKED)))
def test_any_text_is_given_back_as_it_was(store, text):
    store.index.add([doc("k", text, at=2.0, kind="tool look", source="main")])
    assert store.index.get("n", "k") == doc("k", text, at=2.0, kind="tool look", source="main")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), min_size=1, max_size=6))
def test_no_text_and_no_query_of_any_script_raises(new_store, texts):
    index = new_store().index
    index.add([doc(str(number), text) for number, text in enumerate(texts)])
    for number, text in enumerate(texts):
        found = keys(index, text)
        assert str(number) in found if words_in(text) else found == []


def test_all_words_come_before_any_of_them(store):
    store.index.add([doc("both", "red green"), doc("one", "red blue")])
    assert keys(store.index, "green red") == ["both"]
    assert set(keys(store.index, "red green blue")) == {"both", "one"}


def test_a_namespace_sees_its_own_alone(store):
    store.index.add([doc("a", "same words", "one"), doc("b", "same words", "two")])
    assert keys(store.index, "same", "one") == ["a"]
    assert set(keys(store.index, "same", "one", "two")) == {"a", "b"}
    assert keys(store.index, "same", "three") == keys(store.index, "same", "\ud800") == []
    many = [f"space {number}" for number in range(600)]
    assert keys(store.index, "same", *many, "two") == ["b"]
    store.index.add([doc("k", "same", name) for name in many])
    assert len(keys(store.index, "same", *many, limit=10**9)) == MOST_HITS


def test_adding_again_changes_nothing_and_another_text_takes_the_place(store):
    index = store.index
    assert index.add([doc("k", "first words"), doc("l", "other")]) == 2
    assert index.add([doc("k", "first words")]) == 0
    assert keys(index, "first") == ["k"]
    assert index.add([doc("k", "second words")]) == 1
    assert keys(index, "first") == []
    assert keys(index, "second") == ["k"]


def test_all_documents_enter_or_none(store):
    with pytest.raises(UsageError, match="lone surrogate"):
        store.index.add([doc("k", "words"), doc("\ud800", "words")], read_to={"n": 7})
    assert keys(store.index, "words") == []
    assert store.index.position("n") == 0


def test_the_position_only_grows(store):
    assert store.index.position("n") == 0
    store.index.add([], read_to={"n": 7})
    store.index.add([], read_to={"n": 3})
    assert store.index.position("n") == 7


def test_what_is_forgotten_is_gone_with_its_position(store):
    store.index.add([doc("k", "words"), doc("k", "words", "kept")], read_to={"n": 7})
    store.index.forget("n")
    store.index.forget("never was")
    assert store.index.get("n", "k") is None
    assert store.index.position("n") == 0
    assert keys(store.index, "words", "n", "kept") == ["k"]


def test_a_deleted_session_takes_its_archive_with_it(store):
    for session in ("s", "t"):
        store.append(session, [message("hi")], after=0)
        store.index.add([doc("1", "words", archive_of(session))], read_to={archive_of(session): 1})
    store.delete("s")
    assert keys(store.index, "words", archive_of("s"), archive_of("t")) == ["1"]
    assert store.index.position(archive_of("s")) == 0


def test_the_bytes_of_a_deleted_archive_are_overwritten(sqlite, path):
    sqlite.append("s", [message("hi")], after=0)
    sqlite.index.add([doc("1", "zanzibarquux", archive_of("s"), source="zanzibarsource")])
    sqlite._fetch_all("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"zanzibar" in path.read_bytes()
    sqlite.delete("s")
    assert b"zanzibar" not in path.read_bytes()


@pytest.mark.parametrize(
    "harm",
    ["UPDATE search_documents SET text = x'00'", "UPDATE search_words_data SET block = x'0011'"],
)
def test_a_session_whose_archive_is_damaged_is_deleted_after_the_index_was_made_anew(
    sqlite, path, harm
):
    sqlite.append("s", [message("hi")], after=0)
    sqlite.index.add([doc("1", "words", archive_of("s"))])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(harm)
    other.close()
    with pytest.raises(StoreUnavailable, match="index") as refused:
        sqlite.delete("s")
    assert "knowledge repair" in refused.value.next_step
    assert sqlite.last_seq("s") == 1
    sqlite.index.reset()
    sqlite.delete("s")
    assert sqlite.sessions() == []


def test_an_archive_follows_a_log_that_is_set_aside(store):
    store.append("s", [message("hi")], after=0)
    store.index.add([doc("1", "words", archive_of("s"))], read_to={archive_of("s"): 1})
    aside = store.set_aside("s")
    assert keys(store.index, "words", archive_of("s")) == []
    assert keys(store.index, "words", archive_of(aside)) == ["1"]
    assert store.index.position(archive_of("s")) == 0


def test_it_survives_in_the_file_of_the_store(sqlite, path):
    sqlite.index.add([doc("k", "words")])
    sqlite.close()
    again = SqliteStore(path)
    assert keys(again.index, "words") == ["k"]
    again.close()


def test_a_search_makes_no_tables(sqlite, path):
    assert keys(sqlite.index, "words") == []
    sqlite.index.forget("n")
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    assert not [name for name in names if name.startswith("search")]


def test_a_closed_store_says_so(store):
    store.index.add([doc("k", "words")])
    store.close()
    with pytest.raises(StoreUnavailable):
        store.index.search(("n",), "words")


def test_a_locked_file_is_busy(path):
    store = SqliteStore(path, busy_timeout_seconds=0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        store.index.add([doc("k", "words")])
    other.close()
    store.close()


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM search_words_data",
        "UPDATE search_words_data SET block = x'ffffffffffffffffff'",
        "UPDATE search_documents SET text = x'00'",
        "UPDATE search_documents SET text = 7",
    ],
    ids=range(4),
)
def test_a_damaged_index_is_an_error_of_the_store_and_can_be_made_anew(sqlite, path, harm):
    sqlite.index.add([doc("k", "words here")])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(harm)
    other.close()
    sqlite.close()
    again = SqliteStore(path)
    with pytest.raises(StoreUnavailable, match="index") as refused:
        again.index.search(("n",), "words")
    assert "knowledge repair" in refused.value.next_step
    again.index.reset()
    again.index.add([doc("k", "words here")])
    assert keys(again.index, "words") == ["k"]
    again.close()


def test_an_index_made_anew_has_all_texts_but_the_damaged_and_asks_for_those(sqlite, path):
    sqlite.index.add(
        [doc("k", "words"), doc("l", "words"), doc("m", "words", "o")], read_to={"n": 7}
    )
    sqlite.index.add([], read_to={"o": 7})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("UPDATE search_documents SET text = x'00' WHERE key = 'k'")
    other.execute("DELETE FROM search_words_data")
    other.close()
    sqlite.index.reset()
    assert keys(sqlite.index, "words", "n", "o") == ["m", "l"]
    assert [sqlite.index.position(name) for name in "no"] == [0, 7]


def test_an_sqlite_without_full_text_search_is_said(store, monkeypatch):
    monkeypatch.setattr(fulltext, "_MODULE", "fts9")
    with pytest.raises(StoreUnavailable, match="FTS5") as refused:
        store.index.add([doc("k", "words")])
    assert refused.value.next_step


def test_a_snippet_shows_the_place_within_its_limit():
    text = "before " * 200 + "the needle\nis here " + "after " * 200
    shown = snippet_of(text, "needle", SNIPPET_CHARS)
    assert "the needle is here" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) <= SNIPPET_CHARS
    assert snippet_of("short", "none", SNIPPET_CHARS) == "short"
    assert "end." in snippet_of("word " * 200 + "end.", "end", SNIPPET_CHARS)


@given(st.text(max_size=80), st.text(max_size=10), st.integers(3, 60))
def test_a_snippet_is_never_longer_than_asked(text, query, most):
    assert len(snippet_of(text, query, most)) <= most
