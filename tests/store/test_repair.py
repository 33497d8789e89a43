"""A damaged search index is made anew, and whatever cannot be is named first."""

import sqlite3
from contextlib import closing

import pytest
from vocabulary import message

from barograph.core.errors import StoreUnavailable
from barograph.store.archive import fill_archive
from barograph.store.knowledge import NewDocument
from barograph.store.repair import Repair, repair_index
from barograph.store.search import archive_of


@pytest.fixture
def harm(path):
    def execute(statement):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            assert other.execute(statement).rowcount

    return execute


@pytest.fixture
def filled(sqlite):
    """Two sessions with an archive, one without, and two documents."""
    for session in ("s", "t", "never searched"):
        sqlite.append(session, [message(f"a harbour in {session}"), message("silt")], after=0)
    for session in ("s", "t"):
        fill_archive(sqlite, session)
    for origin in ("kept.md", "lost.md"):
        new = NewDocument(text=f"The rule of {origin}.", origin=origin)
        sqlite.index.documents.add(new, at=1.0)
    return sqlite


def found(store, words, session):
    return [hit.key for hit in store.index.search([archive_of(session)], words)]


def test_a_sound_index_stays_as_it_is(filled):
    before = list(filled.read("s"))
    made = repair_index(filled, drops=False)
    assert made == Repair(done=True, sessions=3, events=6, kept=2, lost=[], archives=2)
    assert list(filled.read("s")) == before
    assert found(filled, "harbour", "s") == ["1"]
    assert filled.index.position(archive_of("never searched")) == 0


def test_words_and_records_come_back_from_texts_and_logs(filled, harm):
    harm("DELETE FROM search_documents WHERE source = 'main' AND key = '1'")
    harm("UPDATE search_documents SET text = x'00' WHERE source = 'main' AND id = 4")
    harm("DELETE FROM search_words_data")
    with pytest.raises(StoreUnavailable, match="index") as refused:
        found(filled, "harbour", "s")
    assert "`barograph knowledge repair`" in refused.value.next_step

    made = repair_index(filled, drops=False)

    assert (made.done, made.archives, made.restored, made.unread) == (True, 2, 3, [])
    for session in ("s", "t"):
        assert found(filled, "harbour", session) == ["1"]
        assert found(filled, "silt", session) == ["2"]
    assert repair_index(filled, drops=False).restored == 0


def test_a_document_that_lost_text_is_named_and_nothing_changes_until_it_may_go(filled, harm):
    harm("UPDATE search_documents SET text = x'00' WHERE key LIKE '%.1' AND id = 6")
    harm("DELETE FROM search_words_data")

    told = repair_index(filled, drops=False)

    assert not told.done
    assert (told.kept, [one.origin for one in told.lost]) == (1, ["lost.md"])
    assert len(filled.index.documents.entries()) == 2
    with pytest.raises(StoreUnavailable):
        found(filled, "harbour", "s")

    assert repair_index(filled, drops=True).done
    assert [one.origin for one in filled.index.documents.entries()] == ["kept.md"]
    assert found(filled, "harbour", "s") == ["1"]


def test_a_log_that_is_damaged_is_said_and_keeps_the_archive_that_it_has(filled, harm):
    harm("UPDATE events SET data = x'00' WHERE id >> 32 = 1")
    harm("DELETE FROM search_words_data")
    made = repair_index(filled, drops=False)
    assert (made.done, made.archives) == (True, 1)
    assert [one.session for one in made.unread] == ["s"]
    assert found(filled, "harbour", "s") == ["1"]
