"""LangChain's embeddings, as what makes vectors of passages."""

from typing import Final

from langchain_core.embeddings import Embeddings


class LangChainEmbedder:
    """An `Embedder` of any LangChain `Embeddings`.

    Args:
        embeddings: makes the vectors.
        name: of its model. LangChain's embeddings have no name in common, and vectors of another
            model must not be taken for its own.
    """

    def __init__(self, embeddings: Embeddings, *, name: str) -> None:
        self._embeddings = embeddings
        self.name: Final = name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector of each text."""
        return self._embeddings.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self._embeddings.embed_query(text)
