"""Recall: by words, by meaning too where there are vectors, within scope and budget always."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from barograph.core.errors import UsageError
from barograph.core.recall import fit_items, fuse_rankings
from barograph.core.trust import Item, reaches
from barograph.frame.knowledge import Knowledge
from barograph.langchain.embeddings import LangChainEmbedder
from barograph.store import MemoryStore
from barograph.store.knowledge import NewDocument

MEANINGS = {"car": [1.0, 0.0], "automobile": [0.9, 0.1], "rain": [0.0, 1.0]}


class ByMeaning(Embeddings):
    """Knows what a few words mean."""

    def __init__(self):
        self.asked = []

    def embed_documents(self, texts):
        self.asked.append(len(texts))
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return next((vector for word, vector in MEANINGS.items() if word in text), [0.1, 0.1])


@pytest.fixture
def store():
    opened = MemoryStore()
    yield opened
    opened.close()


def add(store, *texts, **more):
    for text in texts:
        new = NewDocument(text=text, origin=text.split()[0], **more)
        store.index.documents.add(new, at=1.0)


def origins(items):
    return [item.origin for item in items]


def test_words_alone_find_without_an_embedder(store):
    add(store, "car repairs", "rain today")
    assert origins(Knowledge(store.index.passages).retrieve("repairs of a car")) == ["car"]
    assert Knowledge(store.index.passages).embed() == 0


def test_vectors_find_what_has_none_of_the_words(store):
    add(store, "automobile repairs", "rain today")
    embedder = LangChainEmbedder(ByMeaning(), name="m")
    knowledge = Knowledge(store.index.passages, embedder)
    assert knowledge.retrieve("my car") == ()
    assert knowledge.embed() == 2
    assert origins(knowledge.retrieve("my car", limit=1)) == ["automobile"]
    assert knowledge.embed() == 0


def test_what_both_rankings_have_comes_before_what_one_has(store):
    add(store, "automobile one", "car two", "rain two")
    knowledge = Knowledge(store.index.passages, LangChainEmbedder(ByMeaning(), name="m"))
    knowledge.embed()
    assert origins(knowledge.retrieve("car two"))[0] == "car"
    assert set(origins(knowledge.retrieve("car two"))) == {"automobile", "car", "rain"}


def test_passages_added_later_are_found_by_words_until_they_have_vectors(store):
    knowledge = Knowledge(store.index.passages, LangChainEmbedder(ByMeaning(), name="m"))
    add(store, "automobile one")
    knowledge.embed()
    add(store, "rain late")
    assert "rain" in origins(knowledge.retrieve("late"))


def test_vectors_are_made_in_batches(store):
    add(store, *(f"{number} text" for number in range(150)))
    model = ByMeaning()
    assert Knowledge(store.index.passages, LangChainEmbedder(model, name="m")).embed() == 150
    assert model.asked == [64, 64, 22]


def test_an_embedder_that_fails_leaves_the_words_and_a_warning(store, caplog):
    class Down(ByMeaning):
        def embed_query(self, text):
            raise ConnectionError(f"no route for {text}")

    add(store, "car repairs")
    knowledge = Knowledge(store.index.passages, LangChainEmbedder(Down(), name="far-away"))
    with caplog.at_level(logging.WARNING):
        assert origins(knowledge.retrieve("car")) == ["car"]
    assert "far-away made no vector: no route for car" in caplog.text


def test_an_embedder_that_gives_too_few_vectors_is_an_error(store):
    class Short(ByMeaning):
        def embed_documents(self, texts):
            return super().embed_documents(texts)[1:]

    add(store, "car", "rain")
    with pytest.raises(ValueError, match="shorter"):
        Knowledge(store.index.passages, LangChainEmbedder(Short(), name="m")).embed()


def test_a_vector_that_is_not_finite_is_said(store):
    class Broken(ByMeaning):
        def embed_query(self, text):
            return [float("inf"), *super().embed_query(text)]

    add(store, "car")
    with pytest.raises(UsageError, match="not finite"):
        Knowledge(store.index.passages, LangChainEmbedder(Broken(), name="m")).embed()


@pytest.mark.parametrize("has_vectors", [False, True])
def test_nothing_below_the_floor_or_out_of_scope_is_recalled(store, has_vectors):
    for namespace in "ab":
        for domain in ("", "law"):
            for trust in ("operator", "derived", "external"):
                text = f"car {namespace} {domain} {trust}"
                new = NewDocument(text=text, namespace=namespace, domain=domain, trust=trust)
                store.index.documents.add(new, at=1.0)
    embedder = LangChainEmbedder(ByMeaning(), name="m")
    knowledge = Knowledge(store.index.passages, embedder if has_vectors else None)
    knowledge.embed()
    for floor, most in (("operator", 4), ("derived", 8), ("external", 12)):
        found = knowledge.retrieve("car", floor=floor, limit=50)
        assert len(found) == most
        assert all(reaches(item.trust, floor) for item in found)
    found = knowledge.retrieve("car", namespaces=("b",), domains=("law",), limit=50)
    assert {item.text for item in found} == {
        f"car b law {t}" for t in ("operator", "derived", "external")
    }
    assert knowledge.retrieve("car", namespaces=()) == ()


def test_the_budget_holds_and_a_passage_that_is_too_long_gives_way(store):
    add(store, "long car car car " + "of many words " * 50, "short car")
    knowledge = Knowledge(store.index.passages)
    assert origins(knowledge.retrieve("car", budget_chars=100)) == ["short"]
    assert len(knowledge.retrieve("car", budget_chars=2000)) == 2
    assert knowledge.retrieve("car", budget_chars=3) == ()
    assert len(knowledge.retrieve("car", limit=1)) == 1


ITEMS = st.lists(st.text("abcdef", min_size=1, max_size=1), unique=True).map(
    lambda names: tuple(Item(id=name, text=name * 7) for name in names)
)


@given(st.lists(ITEMS, max_size=3))
def test_a_fused_ranking_has_every_item_once_and_keeps_an_order_that_all_agree_on(rankings):
    fused = fuse_rankings(rankings)
    names = [item.id for item in fused]
    assert sorted(names) == sorted({item.id for ranking in rankings for item in ranking})
    assert [item.score for item in fused] == sorted((item.score for item in fused), reverse=True)
    if len(rankings) == 1:
        assert names == [item.id for item in rankings[0]]


@given(ITEMS, st.integers(0, 60))
def test_what_fits_a_budget_is_never_longer(items, budget_chars):
    kept = fit_items(items, budget_chars)
    assert sum(len(item.text) for item in kept) <= budget_chars
    assert len(kept) == min(len(items), budget_chars // 7)
