"""A vector store of LangChain whose vectors are codes: 16 bytes a document in place of kilobytes.

Texts and metadata stand in one SQLite file beside the codes; a change is on disk when it returns, and several
processes may use one file. Of vectors the store keeps nothing unless ``order="vectors"`` asks for it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ilhash import codes as packed
from ilhash._checks import check_count
from ilhash._extras import require
from ilhash.ties._documents import Documents, Stored

_VectorStore: Any = require("langchain_core.vectorstores", "langchain", "ilhash.ties.langchain").VectorStore
_Document = require("langchain_core.documents", "langchain", "ilhash.ties.langchain").Document

__all__ = ["IlhashVectorStore"]

Filter = Callable[[Any], bool] | Mapping[str, Any] | None


class IlhashVectorStore(_VectorStore):  # type: ignore[misc]
    """Documents found by the codes of their embeddings.

    Parameters
    ----------
    embedding : Embeddings of LangChain, texts to vectors
    model : fitted model of ilhash or its folder, optional; without, a bit is the sign of a number of the embedding
    path : path-like, optional, the file that the documents live in; in memory without
    order : {"asymmetric", "hamming", "vectors"}, default "asymmetric"
        The query keeps its margins; or only bits are compared; or the vectors of the documents are kept, too, and
        order a shortlist.

    Examples
    --------
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> store = IlhashVectorStore(DeterministicFakeEmbedding(size=64))
    >>> store.add_texts(["apples and pears", "sun and moon"], ids=["fruit", "sky"])
    ['fruit', 'sky']
    >>> [(found.id, score) for found, score in store.similarity_search_with_score("sun and moon", k=1)]
    [('sky', 1.0)]
    """

    def __init__(
        self,
        embedding: Any,
        *,
        model: Any = None,
        path: str | os.PathLike[str] | None = None,
        order: str = "asymmetric",
    ) -> None:
        if not hasattr(embedding, "embed_documents"):
            raise TypeError(f"embedding must be Embeddings of LangChain, got {type(embedding).__name__}")
        self._embedding = embedding
        self._documents = Documents(path, model, order, keep_vectors=order == "vectors")

    def __len__(self) -> int:
        return len(self._documents)

    def close(self) -> None:
        """Let go of the file."""
        self._documents.close()

    @property
    def embeddings(self) -> Any:
        """What makes vectors of texts."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        embedding: Any,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str] | None = None,
        **settings: Any,
    ) -> IlhashVectorStore:
        """Make a store of texts.

        Parameters
        ----------
        texts : sequence of str
        embedding : Embeddings of LangChain
        metadatas : sequence of mappings, optional, one per text
        ids : sequence of str, optional, one per text
        **settings : model, path and order, as of the class

        Returns
        -------
        IlhashVectorStore
        """
        store = cls(embedding, **settings)
        store.add_texts(list(texts), metadatas, ids=None if ids is None else list(ids))
        return store

    # -------------------------------------------------------------------------------------------- changes

    def add_documents(self, documents: Sequence[Any], **kwargs: Any) -> list[str]:
        """Add documents; one whose id is there takes the place of that one.

        Parameters
        ----------
        documents : sequence of Document
        **kwargs : ids, optional, sequence of str, one per document; by default their own, or new ones

        Returns
        -------
        list of str, the ids
        """
        ids = kwargs.get("ids") or [document.id for document in documents]
        if len(ids) != len(documents):
            raise ValueError(f"ids must be one per document, got {len(ids)} for {len(documents)}")
        names = [str(uuid.uuid4()) if name is None else str(name) for name in ids]
        last = {name: place for place, name in enumerate(names)}  # of equal ids the last one counts
        texts = [documents[place].page_content for place in last.values()]
        bodies = [_body(documents[place]) for place in last.values()]
        vectors = self._embedding.embed_documents(texts) if texts else []
        self._documents.put(list(last), bodies, vectors)
        return names

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents.

        Parameters
        ----------
        ids : sequence of str, optional, those that are not there are passed over; all documents by default
        **kwargs : ignored, there for LangChain

        Returns
        -------
        bool, True
        """
        self._documents.remove([one.id for one in self._documents.all()] if ids is None else list(ids))
        return True

    # -------------------------------------------------------------------------------------------- search

    def get_by_ids(self, ids: Sequence[str], /) -> list[Any]:
        """Return documents in the order of their ids.

        Parameters
        ----------
        ids : sequence of str, those that are not there are passed over

        Returns
        -------
        list of Document
        """
        return [_document(one) for one in self._documents.get(list(ids))]

    def similarity_search(self, query: str, k: int = 4, filter: Filter = None, **kwargs: Any) -> list[Any]:  # noqa: A002 (LangChain's name)
        """Return the documents nearest to a text.

        Parameters
        ----------
        query : str
        k : int, default 4, how many
        filter : function of a Document or mapping, optional
            Says which documents may be answers; a mapping means metadata that are equal. It looks at every document.
        **kwargs : ignored, there for LangChain

        Returns
        -------
        list of Document, the nearest first
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, filter)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filter = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[tuple[Any, float]]:
        """Return the documents nearest to a text, with scores.

        Parameters
        ----------
        query, k, filter, **kwargs : as in :meth:`similarity_search`

        Returns
        -------
        list of (Document, float), scores from 1, the same code, down to 0, all bits others
        """
        return self.similarity_search_with_score_by_vector(self._embedding.embed_query(query), k, filter)

    def similarity_search_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        filter: Filter = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Any]:
        """Return the documents nearest to a vector.

        Parameters
        ----------
        embedding : sequence of float
        k, filter, **kwargs : as in :meth:`similarity_search`

        Returns
        -------
        list of Document, the nearest first
        """
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, filter)]

    def similarity_search_with_score_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        filter: Filter = None,  # noqa: A002
    ) -> list[tuple[Any, float]]:
        """Return the documents nearest to a vector, with scores.

        Parameters
        ----------
        embedding, k, filter : as in :meth:`similarity_search_by_vector`

        Returns
        -------
        list of (Document, float), as in :meth:`similarity_search_with_score`
        """
        found = self._documents.search(embedding, check_count("k", k), self._allowed(filter))
        scores = dict(found)
        return [(_document(one), scores[one.id]) for one in self._documents.get(list(scores))]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Any]:
        """Return documents that are near to a text and far from each other, by their codes.

        Parameters
        ----------
        query : str
        k : int, default 4, how many
        fetch_k : int, default 20, of how many of the nearest
        lambda_mult : float, default 0.5, 1 for the nearest, 0 for the most diverse
        **kwargs : filter, as in :meth:`similarity_search`

        Returns
        -------
        list of Document
        """
        embedding = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(embedding, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Any]:
        """Return documents that are near to a vector and far from each other, by their codes.

        Parameters
        ----------
        embedding : sequence of float
        k, fetch_k, lambda_mult, **kwargs : as in :meth:`max_marginal_relevance_search`

        Returns
        -------
        list of Document
        """
        nearest = self.similarity_search_by_vector(embedding, fetch_k, kwargs.get("filter"))
        if not nearest:
            return []
        n_bits = self._documents.n_bits or 0
        signs = _signs(self._documents.codes([document.id for document in nearest]), n_bits)
        margins = self._documents.coder.margins(np.atleast_2d(np.asarray(embedding, float)))
        query = _signs(packed.pack(margins > 0), n_bits)[0]
        relevance = require("langchain_core.vectorstores.utils", "langchain", "ilhash.ties.langchain")
        chosen = relevance.maximal_marginal_relevance(query, list(signs), lambda_mult=lambda_mult, k=k)
        return [nearest[place] for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float  # scores are between 0 and 1 as they come

    def _allowed(self, wanted: Filter) -> list[str] | None:
        if wanted is None:
            return None
        if isinstance(wanted, Mapping):
            items = list(wanted.items())
            return [
                one.id
                for one in self._documents.all()
                if all(json.loads(one.body)["metadata"].get(name) == value for name, value in items)
            ]
        if not callable(wanted):
            raise TypeError(f"filter must be a function or a mapping of metadata, got {type(wanted).__name__}")
        return [one.id for one in self._documents.all() if wanted(_document(one))]


def _body(document: Any) -> str:
    try:
        return json.dumps({"page_content": document.page_content, "metadata": document.metadata})
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be values that JSON can hold, got others: {error}") from None


def _document(one: Stored) -> Any:
    body = json.loads(one.body)
    return _Document(id=one.id, page_content=body["page_content"], metadata=body["metadata"])


def _signs(codes: Any, n_bits: int) -> Any:
    """Return bits as -1 and 1, the cosine of which is 1 - 2 d / n_bits."""
    return packed.unpack(codes, n_bits).astype(np.float64) * 2 - 1
