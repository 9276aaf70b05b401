"""The client of a service."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from ilhash._checks import check_choice, check_count, check_flag, check_positive, is_number
from ilhash.client._answers import Hits, Id, Progress, ServiceError
from ilhash.client._connection import Connection

ORDERS = ("hamming", "asymmetric", "margins", "vectors")
MOST = 100_000_000  # numbers of a request
LOOK = 0.5  # seconds between looks at how far learning is

Own = TypeVar("Own", bound="Client")
Document = dict[str, Any]


class Client:
    """A service of ``ilhash serve``, with the methods of an index. Threads may share it.

    A service that is busy is asked again after a while. Whatever else it refuses is a ``ServiceError`` with its own
    sentence.

    Parameters
    ----------
    url : str, its address, such as ``"http://127.0.0.1:8000"``
    token : str, optional, where the service asks for one
    timeout : float, default 60, seconds that an answer may take
    retries : int, default 5, how often a busy service is asked again

    Examples
    --------
    >>> Client("ftp://nowhere")
    Traceback (most recent call last):
    ...
    ValueError: url must be such as 'http://127.0.0.1:8000', got 'ftp://nowhere'
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0, retries: int = 5) -> None:
        if not isinstance(url, str):
            raise TypeError(f"url must be a text such as 'http://127.0.0.1:8000', got {type(url).__name__}")
        if token is not None and not isinstance(token, str):
            raise TypeError(f"token must be a text or None, got {type(token).__name__}")
        self.url = url
        self._connection = Connection(
            url, token, check_positive("timeout", timeout, 1e6), check_count("retries", retries, 0, 1000)
        )

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -------------------------------------------------------------------------------------------- what is in it

    def info(self) -> Document:
        """Return what the service is.

        Returns
        -------
        dict, model, index, feedback, items, orders, models and limits
        """
        return self._get("/v1/info")

    def ready(self) -> bool:
        """Say whether the service answers.

        Returns
        -------
        bool
        """
        return self._connection.ask_bytes("GET", "/readyz").strip() == b"ready"

    def __len__(self) -> int:
        return int(self.info()["index"]["items"])

    def __contains__(self, item: object) -> bool:
        if isinstance(item, bool) or not isinstance(item, int | str):
            return False
        try:
            self.item(item)
        except ServiceError as error:
            if error.status == 404:
                return False
            raise
        return True

    @property
    def n_bits(self) -> int:
        """Bits per code, as they are now."""
        return int(self.info()["model"]["n_bits"])

    def item(self, item: Id) -> Document:
        """Return what is known of an item.

        Parameters
        ----------
        item : int or str, its id

        Returns
        -------
        dict, id, label, text, picture, code and margins
        """
        return self._get(f"/v1/items/{_quoted('item', item)}")

    def look(self, ids: Any, *, margins: bool = False) -> list[Document]:
        """Return what is known of many items.

        Parameters
        ----------
        ids : sequence of int or str
        margins : bool, default False, whether margins come with them

        Returns
        -------
        list of dict, as of :meth:`item`
        """
        body = {"ids": _list("ids", ids), "margins": check_flag("margins", margins)}
        return list(self._post("/v1/items/look", body)["items"])

    def random(self, n: int = 10, *, seed: int = 0) -> list[Document]:
        """Return some items.

        Parameters
        ----------
        n : int, default 10, how many
        seed : int, default 0, which

        Returns
        -------
        list of dict, as of :meth:`item`
        """
        about = {"random": check_count("n", n), "seed": check_count("seed", seed, 0)}
        return list(self._get(f"/v1/items?{urlencode(about)}")["items"])

    def __iter__(self) -> Iterator[Document]:
        """Yield all items in the order of their ids, as of :meth:`item`."""
        after: dict[str, Any] = {}
        while True:
            found = self._get(f"/v1/items?{urlencode({'limit': 200, **after})}")
            yield from found["items"]
            if not found["more"]:
                return
            after = {"after": found["items"][-1]["id"]}

    def codes(self, ids: Any) -> list[str]:
        """Return the codes of items.

        Parameters
        ----------
        ids : sequence of int or str

        Returns
        -------
        list of str, hexadecimal: ``ilhash.codes.from_hex`` makes packed codes of them
        """
        return [str(one["code"]) for one in self.look(ids)]

    def picture(self, item: Id) -> bytes:
        """Return the picture of an item.

        Parameters
        ----------
        item : int or str, its id

        Returns
        -------
        bytes, a file
        """
        return self._connection.ask_bytes("GET", f"/v1/pictures/{_quoted('item', item)}")

    # -------------------------------------------------------------------------------------------- search

    def search(self, codes: Any, k: int = 10, **options: Any) -> Hits:
        """Return the k nearest items of codes.

        Parameters
        ----------
        codes : sequence of str, hexadecimal, or uint8 array of packed codes
        k : int, default 10, how many
        **options : n_bits, how many bits at the beginning of the code count; model, the name of another model; radius,
            the distance up to which items are answers

        Returns
        -------
        Hits
        """
        return self._search({"codes": _codes(codes)}, k, options)

    def within(self, codes: Any, radius: float, k: int = 1000, **options: Any) -> Hits:
        """Return the items at most so far from codes, nearest first.

        Parameters
        ----------
        codes : as in :meth:`search`
        radius : float, the distance
        k : int, default 1000, how many of them at most; a query that has so many may have more
        **options : as in :meth:`search`

        Returns
        -------
        Hits, lists of different lengths
        """
        if not is_number(radius) or not 0 <= radius < math.inf:
            raise ValueError(f"radius must be a number of at least 0, got {radius!r}")
        return self.search(codes, k, radius=float(radius), **options)

    def search_vectors(self, X: Any, k: int = 10, *, order: str = "hamming", **options: Any) -> Hits:
        """Return the k nearest items of vectors.

        Parameters
        ----------
        X : array (n_queries, D) or list of lists
        k : int, default 10, how many
        order : {"hamming", "asymmetric", "margins", "vectors"}, default "hamming", of which the service has some
        **options : as in :meth:`search`

        Returns
        -------
        Hits
        """
        check_choice("order", order, ORDERS)
        return self._search({"vectors": _list("X", X), "order": order}, k, options)

    def search_ids(
        self, ids: Any, k: int = 10, *, order: str = "hamming", without_self: bool = True, **options: Any
    ) -> Hits:
        """Return the k items nearest to others that are there.

        Parameters
        ----------
        ids : sequence of int or str
        k, order : as in :meth:`search_vectors`
        without_self : bool, default True, whether an item is no answer to itself
        **options : as in :meth:`search`

        Returns
        -------
        Hits
        """
        check_choice("order", order, ORDERS)
        alone = check_flag("without_self", without_self)
        return self._search({"ids": _list("ids", ids), "order": order, "without_self": alone}, k, options)

    def _search(self, body: Document, k: int, options: Document) -> Hits:
        unknown = sorted(set(options) - {"n_bits", "model", "radius"})
        if unknown:
            raise TypeError(f"options must be n_bits, model or radius, got {unknown[0]!r}")
        found = self._post("/v1/search", {**body, "k": check_count("k", k), **options})
        hits = found.pop("hits")
        return Hits([one["ids"] for one in hits], [one["distances"] for one in hits], **found)

    def encode(self, X: Any) -> list[str]:
        """Return the codes of vectors.

        Parameters
        ----------
        X : array (n, D) or list of lists

        Returns
        -------
        list of str, hexadecimal
        """
        return [str(one) for one in self._post("/v1/encode", {"vectors": _list("X", X)})["codes"]]

    # -------------------------------------------------------------------------------------------- changes

    def add(
        self, X: Any = None, ids: Any = None, *, codes: Any = None, labels: Any = None, texts: Any = None
    ) -> list[Id]:
        """Add items; they are on the service's disk when this returns.

        Parameters
        ----------
        X : array (n, D) or list of lists, vectors
        ids : sequence of int or str, optional, by default numbered on
        codes : as in :meth:`search`, instead of X, where the service keeps no vectors
        labels, texts : sequence, optional, one per item

        Returns
        -------
        list of int or str, the ids

        Notes
        -----
        A connection that breaks after the request was sent leaves open whether the items are there, and is not tried
        again: ``ServiceError`` with status 0.
        """
        body = _items(X, codes, ids, labels, texts)
        return list(self._connection.ask("POST", "/v1/items", body, again=False)["ids"])

    def update(
        self, X: Any = None, ids: Any = None, *, codes: Any = None, labels: Any = None, texts: Any = None
    ) -> None:
        """Give items that are there other vectors or codes.

        Parameters
        ----------
        X, ids, codes, labels, texts : as in :meth:`add`; ids must be given, and labels and texts stay where none are
        """
        self._connection.ask("PUT", "/v1/items", _items(X, codes, ids, labels, texts))

    def remove(self, ids: Any) -> None:
        """Remove items.

        Parameters
        ----------
        ids : sequence of int or str, of items that are there
        """
        self._connection.ask("POST", "/v1/items/remove", {"ids": _list("ids", ids)}, again=False)

    # -------------------------------------------------------------------------------------------- learning

    def judge(
        self, query_id: Id, item_id: Any, similar: Any = True, *, weight: float = 1.0, who: str | None = None
    ) -> Document:
        """Say whether items are similar; that is on the service's disk when this returns.

        Parameters
        ----------
        query_id : int or str
        item_id : int or str, or a sequence of them
        similar : bool, or a sequence of them, default True
        weight : float, default 1, how much it counts
        who : str, optional, the person who judges

        Returns
        -------
        dict, what all judgements come to
        """
        items = [item_id] if isinstance(item_id, int | str) else _list("item_id", item_id)
        flags = [similar] * len(items) if isinstance(similar, bool) else _list("similar", similar)
        if len(flags) != len(items):
            raise ValueError(f"similar must be one per item ({len(items)}), got {len(flags)}")
        about = {"query": query_id, "weight": weight, "person": who}
        judgements = [{**about, "item": one, "similar": flag} for one, flag in zip(items, flags, strict=True)]
        return dict(self._connection.ask("POST", "/v1/judgements", {"judgements": judgements}, again=False))

    def judgements(self) -> Document:
        """Return what judgements come to.

        Returns
        -------
        dict, how many judgements, similar and dissimilar pairs, people
        """
        return self._get("/v1/judgements")

    def learn(self, n_bits: int | None = None, *, progress: Callable[[int, int], None] | None = None) -> Progress:
        """Let the service learn from the judgements, and wait until it has.

        Parameters
        ----------
        n_bits : int, optional, new bits; by default as many as held-out judgements find best
        progress : callable, optional, called with (steps done, steps in all)

        Returns
        -------
        Progress, whose state is "done" where new bits were swapped in
        """
        body = {} if n_bits is None else {"n_bits": check_count("n_bits", n_bits, 1, 1024)}
        self._connection.ask("POST", "/v1/learning", body, again=False)
        for document in self._connection.events("/v1/learning/events"):
            if progress is not None:
                progress(int(document["done"]), int(document["total"]))
        while (found := self.learning()).state == "running":  # the stream of a server that ends ends before
            time.sleep(LOOK)
        return found

    def learning(self) -> Progress:
        """Return how far learning is.

        Returns
        -------
        Progress
        """
        return Progress.of(self._get("/v1/learning"))

    # -------------------------------------------------------------------------------------------- requests

    def _get(self, path: str) -> Document:
        return dict(self._connection.ask("GET", path))

    def _post(self, path: str, body: Document) -> Document:
        return dict(self._connection.ask("POST", path, body))


def _quoted(name: str, item: Any) -> str:
    if isinstance(item, bool) or not isinstance(item, int | str):
        raise TypeError(f"{name} must be a whole number or a text, got {item!r}")
    return quote(str(item), safe="")


def _list(name: str, values: Any) -> list[Any]:
    """Return a sequence, an array or rows of them as lists, which JSON knows."""
    if getattr(values, "size", 0) > MOST:  # a map of a file, perhaps: as lists it would not fit into memory
        raise ValueError(f"{name} must have at most {MOST:,} numbers at a time, got {values.size:,}")
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str | bytes | dict) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence, got {type(values).__name__}")
    return [one.tolist() if hasattr(one, "tolist") else list(one) if isinstance(one, tuple) else one for one in values]


def _codes(codes: Any) -> list[str]:
    rows: Sequence[Any] = _list("codes", codes)
    if all(isinstance(row, str) for row in rows):
        return list(rows)
    try:
        return [bytes(row).hex() for row in rows]
    except (TypeError, ValueError, OverflowError):
        raise TypeError("codes must be hexadecimal texts or rows of bytes, got something else") from None


def _items(X: Any, codes: Any, ids: Any, labels: Any, texts: Any) -> Document:
    if (X is None) == (codes is None):
        raise ValueError(f"one of X and codes must be given, got {'none' if X is None else 'both'}")
    body: Document = {"vectors": _list("X", X)} if codes is None else {"codes": _codes(codes)}
    for name, values in (("ids", ids), ("labels", labels), ("texts", texts)):
        if values is not None:
            body[name] = _list(name, values)
    return body
