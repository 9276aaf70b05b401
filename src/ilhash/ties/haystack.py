"""A document store of Haystack whose search is that of codes, and the retriever that asks it.

Documents stand in one SQLite file, or in memory. Importing this imports Haystack, whose telemetry is Haystack's own:
``HAYSTACK_TELEMETRY_ENABLED=False`` switches it off.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ilhash._checks import check_count, check_flag
from ilhash._extras import require
from ilhash.ties._documents import Documents, Stored
from ilhash.ties._metadata import bare, distinct, fields_of, ordered, values_of

_haystack = require("haystack", "haystack", "ilhash.ties.haystack")
_types = require("haystack.document_stores.types", "haystack", "ilhash.ties.haystack")
_errors = require("haystack.document_stores.errors", "haystack", "ilhash.ties.haystack")
_matches = require("haystack.utils.filters", "haystack", "ilhash.ties.haystack").document_matches_filter
_FilterError = require("haystack.errors", "haystack", "ilhash.ties.haystack").FilterError
_Policy = _types.DuplicatePolicy
_Found: Any = list.__class_getitem__(_haystack.Document)  # what a pipeline knows of the answers

__all__ = ["IlhashDocumentStore", "IlhashEmbeddingRetriever"]

Filters = Mapping[str, Any] | None


def _in_a_thread(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return the same method, for ``await``."""

    @functools.wraps(method)
    async def later(*given: Any, **named: Any) -> Any:
        return await asyncio.to_thread(method, *given, **named)

    return later


class IlhashDocumentStore:
    """Documents found by the codes of their embeddings.

    Every method has a twin for ``await``, whose name ends with ``_async``.

    Parameters
    ----------
    model : fitted model of ilhash or its folder, optional; without, a bit is the sign of a number of the embedding
    path : path-like, optional, the file that the documents live in; in memory without
    order : {"asymmetric", "hamming", "vectors"}, default "asymmetric"
        The query keeps its margins; or only bits are compared; or the embeddings order a shortlist.
    keep_embeddings : bool, default True
        Whether documents come back with their embeddings, as Haystack expects; without, 8 bytes per number are saved.

    Examples
    --------
    >>> from haystack import Document
    >>> store = IlhashDocumentStore()
    >>> store.write_documents([Document(content="plum", embedding=[1.0, -1.0]), Document(content="moon")])
    2
    >>> [(found.content, found.score) for found in store.embedding_retrieval([3.0, -2.0], top_k=1)]
    [('plum', 1.0)]
    """

    def __init__(
        self,
        model: Any = None,
        path: str | os.PathLike[str] | None = None,
        order: str = "asymmetric",
        keep_embeddings: bool = True,
    ) -> None:
        self._documents = Documents(path, model, order, check_flag("keep_embeddings", keep_embeddings))

    def close(self) -> None:
        """Let go of the file."""
        self._documents.close()

    def to_dict(self) -> dict[str, Any]:
        """Describe the store for a pipeline's file.

        Returns
        -------
        dict, from which ``from_dict`` makes it again; the model must have been given as a folder
        """
        documents = self._documents
        if documents.coder.model is not None and documents.coder.path is None:
            raise ValueError("model must be given as the folder that it was saved to, got an object, which has no name")
        path = None if documents.path is None else str(documents.path)
        settings = {"model": documents.coder.path, "path": path, "order": documents.order}
        described: dict[str, Any] = _haystack.default_to_dict(self, **settings, keep_embeddings=documents.keep_vectors)
        return described

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> IlhashDocumentStore:
        """Make the store that a pipeline's file describes.

        Parameters
        ----------
        data : dict, what ``to_dict`` gave

        Returns
        -------
        IlhashDocumentStore
        """
        made: IlhashDocumentStore = _haystack.default_from_dict(cls, data)
        return made

    # -------------------------------------------------------------------------------------------- documents

    def count_documents(self) -> int:
        """Count the documents.

        Returns
        -------
        int
        """
        return len(self._documents)

    def filter_documents(self, filters: Filters = None) -> list[Any]:
        """Return documents.

        Parameters
        ----------
        filters : mapping, optional, filters of Haystack; each document is looked at

        Returns
        -------
        list of Document, in the order in which they were written
        """
        found = [_document(one) for one in self._documents.all()]
        if not filters:
            return found
        if "operator" not in filters or not ("field" in filters or "conditions" in filters):
            got = sorted(map(str, filters))
            raise _FilterError(f"filters must have an operator, and a field or conditions, got {got}")
        return [document for document in found if _matches(filters, document)]

    def write_documents(self, documents: Sequence[Any], policy: Any = _Policy.NONE) -> int:
        """Write documents, all or none.

        Parameters
        ----------
        documents : list of Document
        policy : DuplicatePolicy, default NONE, what to do with ids that are there; NONE is FAIL

        Returns
        -------
        int, how many were written
        """
        kind = _haystack.Document
        if not isinstance(documents, list | tuple) or not all(isinstance(one, kind) for one in documents):
            raise ValueError("documents must be a list of Document, got something else")
        there = self._documents.present([one.id for one in documents])
        wanted: dict[str, Any] = {}
        for one in documents:
            if (one.id not in there and one.id not in wanted) or policy == _Policy.OVERWRITE:
                wanted[one.id] = one
            elif policy != _Policy.SKIP:
                raise _errors.DuplicateDocumentError(f"documents must have new ids, got {one.id!r}, which is there")
        new = list(wanted.values())
        self._documents.put(list(wanted), [_body(one) for one in new], [one.embedding for one in new])
        return len(documents) if policy == _Policy.OVERWRITE else len(new)

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove documents.

        Parameters
        ----------
        document_ids : sequence of str, those that are not there are passed over
        """
        self._documents.remove(list(document_ids))

    def delete_all_documents(self) -> None:
        """Remove all documents."""
        self._documents.remove([one.id for one in self._documents.all()])

    def delete_by_filter(self, filters: Filters) -> int:
        """Remove the documents that a filter names.

        Parameters
        ----------
        filters : mapping, filters of Haystack

        Returns
        -------
        int, how many were removed
        """
        return self._documents.remove([one.id for one in self.filter_documents(filters)])

    def update_by_filter(self, filters: Filters, meta: Mapping[str, Any]) -> int:
        """Set metadata of the documents that a filter names.

        Parameters
        ----------
        filters : mapping, filters of Haystack
        meta : mapping, what is set; other metadata stay

        Returns
        -------
        int, how many were changed
        """
        found = self.filter_documents(filters)
        for one in found:
            one.meta.update(meta)
        self._documents.rewrite([one.id for one in found], [_body(one) for one in found])
        return len(found)

    # -------------------------------------------------------------------------------------------- overviews

    def _metas(self, filters: Filters = None) -> list[dict[str, Any]]:
        return [one.meta for one in self.filter_documents(filters)]

    def count_documents_by_filter(self, filters: Filters) -> int:
        """Count the documents that a filter names.

        Parameters
        ----------
        filters : mapping, filters of Haystack

        Returns
        -------
        int
        """
        return len(self.filter_documents(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: Sequence[str]) -> dict[str, int]:
        """Count the values that fields of the metadata have.

        Parameters
        ----------
        filters : mapping, filters of Haystack
        metadata_fields : sequence of str

        Returns
        -------
        dict, field to number of distinct values
        """
        metas = self._metas(filters)
        return {bare(field): len(distinct(values_of(metas, field))) for field in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Name the fields of the metadata.

        Returns
        -------
        dict, field to ``{"type": "boolean", "int", "float" or "keyword"}``
        """
        return fields_of(self._metas())

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the largest value of a field.

        Parameters
        ----------
        metadata_field : str

        Returns
        -------
        dict of min and max, None where no document has the field
        """
        values = values_of(self._metas(), metadata_field)
        return {"min": min(values, default=None), "max": max(values, default=None)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters = None,
    ) -> tuple[list[Any], int]:
        """Return distinct values of a field, page by page.

        Parameters
        ----------
        metadata_field : str
        search_term : str, optional, part of the values, upper or lower case
        from_, size : int, the first of the page, and how many
        filters : mapping, optional, filters of Haystack

        Returns
        -------
        list and int, the values, and how many there are on all pages
        """
        values = ordered(values_of(self._metas(filters), metadata_field))
        if search_term is not None:
            values = [value for value in values if search_term.lower() in str(value).lower()]
        return values[from_ : from_ + size], len(values)

    # -------------------------------------------------------------------------------------------- search

    def embedding_retrieval(
        self,
        query_embedding: Sequence[float],
        filters: Filters = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Any]:
        """Return the documents nearest to a vector.

        Parameters
        ----------
        query_embedding : sequence of float
        filters : mapping, optional, filters of Haystack; each document is looked at
        top_k : int, default 10, how many
        return_embedding : bool, default False, whether documents come with their embeddings, where these are kept

        Returns
        -------
        list of Document, the nearest first; scores from 1, the same code, down to 0
        """
        allowed = [one.id for one in self.filter_documents(filters)] if filters else None
        scores = dict(self._documents.search(query_embedding, check_count("top_k", top_k), allowed))
        return [_document(one, scores[one.id], return_embedding) for one in self._documents.get(list(scores))]

    count_documents_async = _in_a_thread(count_documents)
    filter_documents_async = _in_a_thread(filter_documents)
    write_documents_async = _in_a_thread(write_documents)
    delete_documents_async = _in_a_thread(delete_documents)
    delete_all_documents_async = _in_a_thread(delete_all_documents)
    delete_by_filter_async = _in_a_thread(delete_by_filter)
    update_by_filter_async = _in_a_thread(update_by_filter)
    count_documents_by_filter_async = _in_a_thread(count_documents_by_filter)
    count_unique_metadata_by_filter_async = _in_a_thread(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = _in_a_thread(get_metadata_fields_info)
    get_metadata_field_min_max_async = _in_a_thread(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = _in_a_thread(get_metadata_field_unique_values)
    embedding_retrieval_async = _in_a_thread(embedding_retrieval)


def _body(document: Any) -> str:
    about = document.to_dict(flatten=False)
    for name in ("id", "embedding", "score"):
        about.pop(name, None)
    try:
        return json.dumps(about)
    except (TypeError, ValueError) as error:
        raise ValueError(f"meta must be values that JSON can hold, got others: {error}") from None


def _document(one: Stored, score: float | None = None, with_embedding: bool = True) -> Any:
    vector = one.vector.tolist() if one.vector is not None and with_embedding else None
    return _haystack.Document.from_dict({**json.loads(one.body), "id": one.id, "embedding": vector, "score": score})


@_haystack.component
class IlhashEmbeddingRetriever:
    """The component of a pipeline that asks an :class:`IlhashDocumentStore`.

    Parameters
    ----------
    document_store : IlhashDocumentStore
    filters : mapping, optional, filters of Haystack
    top_k : int, default 10, how many documents
    filter_policy : FilterPolicy or its name, default "replace", what filters of a run do to these
    """

    def __init__(
        self,
        document_store: IlhashDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: Any = "replace",
    ) -> None:
        if not isinstance(document_store, IlhashDocumentStore):
            raise ValueError(f"document_store must be an IlhashDocumentStore, got {type(document_store).__name__}")
        self.document_store, self.filters, self.top_k = document_store, filters, check_count("top_k", top_k)
        self.filter_policy = (
            filter_policy if isinstance(filter_policy, _types.FilterPolicy) else _types.FilterPolicy(filter_policy)
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the retriever for a pipeline's file.

        Returns
        -------
        dict
        """
        settings = {"filters": self.filters, "top_k": self.top_k, "filter_policy": self.filter_policy.value}
        described: dict[str, Any] = _haystack.default_to_dict(
            self, document_store=self.document_store.to_dict(), **settings
        )
        return described

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> IlhashEmbeddingRetriever:
        """Make the retriever that a pipeline's file describes.

        Parameters
        ----------
        data : dict, what ``to_dict`` gave

        Returns
        -------
        IlhashEmbeddingRetriever
        """
        given = dict(data["init_parameters"])
        if isinstance(given["document_store"], dict):
            given["document_store"] = IlhashDocumentStore.from_dict(given["document_store"])
        made: IlhashEmbeddingRetriever = _haystack.default_from_dict(cls, {**data, "init_parameters": given})
        return made

    def _asked(
        self, query_embedding: list[float], filters: dict[str, Any] | None, top_k: int | None
    ) -> dict[str, list[Any]]:
        wanted = _types.apply_filter_policy(self.filter_policy, self.filters, filters)
        return {"documents": self.document_store.embedding_retrieval(query_embedding, wanted, top_k or self.top_k)}

    @_haystack.component.output_types(documents=_Found)  # type: ignore[untyped-decorator]
    def run(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Any]]:
        """Find the documents nearest to an embedding.

        Parameters
        ----------
        query_embedding : list of float
        filters : mapping, optional, filters of Haystack
        top_k : int, optional, how many

        Returns
        -------
        dict, ``documents``: list of Document, the nearest first
        """
        return self._asked(query_embedding, filters, top_k)

    @_haystack.component.output_types(documents=_Found)  # type: ignore[untyped-decorator]
    async def run_async(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Any]]:
        """Do what :meth:`run` does, for ``await``.

        Parameters
        ----------
        query_embedding, filters, top_k : as in :meth:`run`

        Returns
        -------
        dict, as of :meth:`run`
        """
        return await asyncio.to_thread(self._asked, query_embedding, filters, top_k)
