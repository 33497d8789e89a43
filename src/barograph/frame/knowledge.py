"""Recall from documents: what fits a question, within a scope and a budget."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from barograph.core.nods import is_nod
from barograph.core.parts import Text
from barograph.core.recall import HOT, Scope, fit_items, fuse_rankings, telling_words
from barograph.core.trust import Item, Trust
from barograph.frame.source import Ask, Source

_log = logging.getLogger("barograph")

_WIDER: Final = 4
"""Each of two rankings gives so many times what is asked for, so that they have items in common."""

_BATCH: Final = 64
"""Passages whose vectors are asked for and kept at once."""


class Passages(Protocol):
    """Where passages are found. `Store.index.passages` is one."""

    def match(self, query: str, scope: Scope, limit: int) -> Sequence[Item]:
        """Passages that hold words of a query, the best first."""
        ...

    def nearest(
        self, vector: Sequence[float], *, model: str, scope: Scope, limit: int
    ) -> Sequence[Item]:
        """Passages whose vectors of that model are the nearest, the best first."""
        ...

    def without_vector(self, model: str, limit: int) -> Mapping[int, str]:
        """Texts of passages that have no vector of that model, by their numbers."""
        ...

    def put_vectors(self, model: str, vectors: Mapping[int, Sequence[float]]) -> None:
        """Keep vectors of passages."""
        ...


class Embedder(Protocol):
    """Makes vectors of texts: near in meaning, near in direction.

    `barograph.langchain.embeddings.LangChainEmbedder` makes one of LangChain's.
    """

    @property
    def name(self) -> str:
        """Of the model. Vectors of two names are never compared."""
        ...

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """A vector of each text, all of one length."""
        ...

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a question."""
        ...


class Knowledge:
    """Recalls passages of documents. Safe in any thread, if its embedder is.

    Args:
        passages: where they are found, as in `open_store(path).index.passages`.
        embedder: to find by meaning as well as by words. Passages that were added since the last
            `embed` are found by their words alone.
    """

    def __init__(self, passages: Passages, embedder: Embedder | None = None) -> None:
        self._passages, self._embedder = passages, embedder

    def retrieve(
        self,
        query: str,
        *,
        budget_chars: int = 4_000,
        floor: Trust = "external",
        namespaces: tuple[str, ...] | None = None,
        domains: tuple[str, ...] | None = None,
        but_domains: tuple[str, ...] = (),
        limit: int = 8,
    ) -> tuple[Item, ...]:
        """The passages that fit a question best, the best first.

        Words such as "the" and "please" count only where the question has no others.
        Where the embedder fails, words alone decide, and a warning is logged.

        Args:
            query: any text.
            budget_chars: the most that their texts have together; one too long is left out.
            floor: the least trust.
            namespaces: those to look into; None for all.
            domains: those to look into; None for all.
            but_domains: those not to look into.
            limit: the most passages.

        Raises:
            StoreError: the index cannot be read.
            UsageError: the embedder gave a vector that is not finite.
        """
        scope = Scope(floor=floor, namespaces=namespaces, domains=domains, but_domains=but_domains)
        words = telling_words(query) or query
        vector = self._vector(query)
        if self._embedder is None or vector is None:
            return fit_items(self._passages.match(words, scope, limit), budget_chars)
        model, most = self._embedder.name, _WIDER * limit
        by_words = self._passages.match(words, scope, most)
        by_vector = self._passages.nearest(vector, model=model, scope=scope, limit=most)
        return fit_items(fuse_rankings((by_words, by_vector))[:limit], budget_chars)

    def embed(self) -> int:
        """Make the vectors that are missing, and keep them; how many there were.

        What was made before an error is kept.

        Raises:
            StoreError: the index cannot be read or written.
        """
        made = 0
        while self._embedder is not None:
            model = self._embedder.name
            missing = self._passages.without_vector(model, _BATCH)
            if not missing:
                break
            vectors = self._embedder.embed_documents(list(missing.values()))
            self._passages.put_vectors(model, dict(zip(missing, vectors, strict=True)))
            made += len(missing)
        return made

    def _vector(self, query: str) -> Sequence[float] | None:
        if self._embedder is None or not query.strip():
            return None
        try:
            return self._embedder.embed_query(query)
        except Exception as error:  # noqa: BLE001 - another's code; words find passages without it
            _log.warning("barograph: %s made no vector: %s", self._embedder.name, error)
            return None


def knowledge_source(
    knowledge: Knowledge,
    *,
    name: str = "knowledge",
    budget_chars: int = 4_000,
    floor: Trust = "external",
    namespaces: tuple[str, ...] | None = None,
    domains: tuple[str, ...] | None = None,
    limit: int = 8,
    timeout_seconds: float = 2.0,
) -> Source:
    """A source that recalls, for each message of the user, the passages that fit it best.

    One that was shown before is not shown again while it can be seen. A message that asks for
    nothing, or has no word that tells anything, recalls nothing. What is of the domain `hot` is
    left to `hot_memory`, unless `domains` names it.

    Args:
        knowledge: what recalls.
        name: of its section.
        budget_chars: the most that a turn brings.
        floor: the least trust.
        namespaces: those to look into; None for all.
        domains: those to look into; None for all.
        limit: the most passages that a turn brings.
        timeout_seconds: how long it is waited for; an embedder may be far away.
    """

    def compose(ask: Ask) -> Sequence[Item]:
        if is_nod((Text(ask.text),)) or not telling_words(ask.text):
            return ()
        return knowledge.retrieve(
            ask.text,
            budget_chars=budget_chars,
            floor=floor,
            namespaces=namespaces,
            domains=domains,
            but_domains=() if domains else (HOT,),
            limit=limit,
        )

    return Source(
        name=name,
        compose=compose,
        budget_chars=budget_chars,
        timeout_seconds=timeout_seconds,
        adds=True,
    )
