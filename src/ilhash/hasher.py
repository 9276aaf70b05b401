"""What every model has in common: hash functions that encode vectors, and a directory that it is saved to."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ilhash import codes
from ilhash._checks import Unavailable, check_callable, chosen_bits, one_bit
from ilhash._parameters import check_parameters
from ilhash.cards import Described, kind_of_supervision, markdown
from ilhash.encoding import stream
from ilhash.functions import Encoder, HashFunction, functions_from_arrays, functions_to_arrays
from ilhash.storage import (
    Contents,
    DamagedFileError,
    Record,
    checked_array,
    chunks_of_arrays,
    sha256_of,
    write_directory,
)
from ilhash.vectors import as_matrix, has_named_features, named_columns, relative, without_columns

__all__ = ["Hasher", "Progress", "Provenance", "with_current_names"]

Own = TypeVar("Own", bound="Hasher")

Given = Mapping[str, Any]  # arguments by name
Progress = Callable[[int, int], None]  # called with (bits done, bits in all)

_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Provenance:
    """Where a bit came from.

    Attributes
    ----------
    method : str, the kind of model it was trained by
    generation : int, 0 for bits of ``fit``, then 1, 2, ... for those of each ``extend``
    seed : int, of its generation
    data : str, optional, fingerprint of the vectors and the supervision that its generation was trained on
    n_points : int, optional, how many vectors these were
    date : str, optional, when the generation was trained, UTC
    name : str, optional, what the user called the generation
    """

    method: str
    generation: int
    seed: int
    data: str | None = None
    n_points: int | None = None
    date: str | None = None
    name: str | None = None


class Hasher(Described, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer from vectors to packed codes; ``_fit`` is what each method adds.

    Attributes
    ----------
    functions_ : list of hash functions, one per bit
    origin_ : float32 array (D,), what is subtracted from every vector
    seed_ : int, what random_state came to
    n_features_in_, feature_names_in_ : int and array of str, as in scikit-learn
    left_out_ : sequence of str, columns of frames and tables that are no features: ids and labels, by their names
    """

    takes_sparse: ClassVar[bool] = False  # whether X may be a sparse matrix
    nested: ClassVar[bool] = True  # whether the first bits of a longer model are the shorter model
    # What else fit learns and a file keeps: attributes without their underscore, and how a file's value is taken.
    _kept: ClassVar[dict[str, Callable[[Record, str], Any]]] = {}
    renamed: ClassVar[dict[str, str]] = {}  # parameters under names of earlier versions: what they are called now

    left_out_: Sequence[str] = ()

    functions_: list[HashFunction]
    origin_: NDArray[np.float32]
    seed_: int

    # -------------------------------------------------------------------------------------------- encoding

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the margins, of which the bits are the signs.

        Parameters
        ----------
        X : array (n, D), vectors, also a memory map or what ilhash.open_vectors gives

        Returns
        -------
        float32 array (n, n_bits), a bit is margin > 0
        """
        matrix = self._input(X)
        out = np.empty((len(matrix), len(self.functions_)), np.float32)
        with closing(self._stream(matrix, lambda margins: margins)) as blocks:
            for rows, margins in blocks:
                out[rows] = margins
        return out

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """Return packed codes.

        Parameters
        ----------
        X : array (n, D), vectors, also a memory map or what ilhash.open_vectors gives

        Returns
        -------
        uint8 array (n, ceil(n_bits / 8)), most significant bit first, padding zero
        """
        matrix = self._input(X)
        out = np.empty((len(matrix), codes.bytes_per_code(len(self.functions_))), np.uint8)
        with closing(self._stream(matrix, _pack)) as blocks:
            for rows, packed in blocks:
                out[rows] = packed
        return out

    def encode_blocks(
        self, X: Any, first: int = 0, last: int | None = None, *, n_threads: int | None = None
    ) -> Generator[tuple[slice, NDArray[np.uint8]]]:
        """Encode vectors in bounded memory, block by block.

        Parameters
        ----------
        X : array (n, D), memory map or VectorSource, the vectors
        first, last : int, optional, the stretch of rows; by default all of them
        n_threads : int, optional, threads that work on blocks; by default one per core

        Returns
        -------
        iterator of (slice, uint8 array), rows and their packed codes, in order
        """
        return self._stream(self._input(X), _pack, first, last, n_threads)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return one name per byte of a code.

        Parameters
        ----------
        input_features : ignored, there for scikit-learn

        Returns
        -------
        object array (bytes,), the class and the number of the byte
        """
        check_is_fitted(self)
        width = codes.bytes_per_code(len(self.functions_))
        return np.asarray([f"{type(self).__name__.lower()}_byte{i}" for i in range(width)], dtype=object)

    def _prepare_encoder(self) -> None:
        self._encoder = Encoder(self.functions_, self.n_features_in_)

    def _input(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._read(X, reset=False)

    def _read(self, X: Any, reset: bool) -> NDArray[Any]:
        X = without_columns(X, self.left_out_)
        matrix = as_matrix(X, sparse=self.takes_sparse)
        validate_data(self, X if has_named_features(X) else matrix, reset=reset, skip_check_array=True)
        return matrix

    def leave_out(self, names: Sequence[str]) -> None:
        """Remember columns of frames and tables that are no features.

        Parameters
        ----------
        names : sequence of str, their names; where a frame has them, they are not looked at
        """
        self.left_out_ = list(dict.fromkeys(names))

    def _stream(
        self, matrix: Any, finish: Callable[[NDArray[np.float32]], NDArray[Any]], *stretch: int | None
    ) -> Generator[tuple[slice, NDArray[Any]]]:
        """Give what ``finish`` makes of the margins of every block of rows; the stretch and threads of ``stream``."""

        def work(rows: slice, block: NDArray[Any]) -> NDArray[Any]:
            return finish(self._margins(block, "X" if len(block) == len(matrix) else f"X[{rows.start}:{rows.stop}]"))

        return stream(work, matrix, *stretch, numbers_per_row=self._numbers_per_row)  # type: ignore[arg-type]

    @property
    def _numbers_per_row(self) -> int:
        return self._encoder.numbers_per_row

    def _margins(self, block: NDArray[Any], name: str) -> NDArray[np.float32]:
        """Return the margins of some rows of X; errors call them by the name."""
        return self._encoder.margins(relative(block, self.origin_, name))

    # -------------------------------------------------------------------------------------------- training

    def fit(
        self: Own,
        X: Any,
        y: Any = None,
        *,
        affinity: Any = None,
        pairs: Any = None,
        ids: str | None = None,
        progress: Progress | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        check: bool = True,
    ) -> Own:
        """Train all bits.

        Affinity, pairs, client and checkpoint are for ILH; other methods, whose bits are learnt in one piece from
        labels or vectors alone, refuse them. A mix takes them where one of its families is ILH, and affinity and pairs
        only where none of the others must have labels: ITQ beside ILH looks at vectors alone, CCAITQ cannot.

        Parameters
        ----------
        X : array (n, D), also a memory map or what ilhash.open_vectors gives, of which only drawn rows are read
            Or a sparse matrix of SciPy, for ILH with linear functions, which is never made dense. Or a frame of pandas
            or polars or a table of pyarrow, whose columns are numbers, or vectors of one length.
        y : array (n,) or (n, L), list of sets or lists, or str, optional
            The name of a column of a frame, or labels, several labels for each point (of one without any nothing is
            known), or an indicator matrix; not looked at by unsupervised methods. Without any supervision ILH learns
            from Euclidean neighbours.
        affinity : sparse matrix (n, n), optional, symmetric, of signed weights, instead of y
        pairs : array (m, 3) or tuple, optional
            Rows (i, j, weight), or a tuple of pairs (m, 2) and weights (m,), instead of y.
        ids : str, optional
            The column of a frame that holds ids. It is no feature, nor is that of y, here and in all that comes later.
        progress : callable, optional
            Called with (bits done, bits in all) as bits finish; those of methods other than ILH finish together.
        client : dask.distributed.Client, optional, its workers train the bits, instead of n_jobs workers of joblib
        checkpoint : path-like, optional
            A directory for finished bits; a run that was killed goes on from there, with the same result. That of a mix
            has a folder for each family that is ILH, such as ``0-ilh``.
        check : bool, default True
            Look at what was trained, where there are bits and points enough, and warn (``ilhash.QualityWarning``) of
            what can be made better. The model is the same either way. Of methods other than ILH nothing is looked at.

        Returns
        -------
        self
        """
        check_callable("progress", progress)
        graph, means = {"affinity": affinity, "pairs": pairs}, {"client": client, "checkpoint": checkpoint}
        X, y, names = named_columns(X, y, ids)
        with self._all_or_nothing():
            self.leave_out(names)
            self._fit(X, y, graph, means, progress)
            self.leave_out(names)
            self.learnt_from_ = kind_of_supervision(y, graph)
        if check:
            self._check_quality(X, y, graph)
        return self

    def _check_quality(self, X: Any, y: Any, graph: Given) -> None:
        """Warn of what can be made better."""

    @abstractmethod
    def _fit(self, X: Any, y: Any, graph: Given, means: Given, progress: Progress | None) -> None:
        """Train all bits; ``graph`` is supervision that is not labels, ``means`` what trains and keeps the bits."""

    def training_rows(
        self, bit: int, X: Any = None, y: Any = None, *, affinity: Any = None, pairs: Any = None
    ) -> NDArray[np.int64]:
        """Return the rows of X that a bit was trained on, drawn again from the seed.

        Where every row could be drawn, nothing but the model is needed. Where only some could (labels that are unknown
        or withheld, a graph or pairs), the data must be given again: which ones they were is not kept.

        Parameters
        ----------
        bit : int, its place in the model
        X, y, affinity, pairs : as in fit, optional, the data that the model was fitted on

        Returns
        -------
        int64 array (n_train,), row numbers, ascending; where they were drawn with replacement, with repeats
        """
        check_is_fitted(self)
        place = one_bit(bit, len(self.functions_))
        X, y, _ = named_columns(X, y, None)
        return self._rows_of_bit(place, X, y, {"affinity": affinity, "pairs": pairs})

    def provenance(self) -> list[Provenance]:
        """Return where each bit came from.

        Returns
        -------
        list of Provenance, one per bit; of methods other than ILH the data are not kept
        """
        check_is_fitted(self)
        return [Provenance(type(self).__name__, 0, self.seed_)] * len(self.functions_)

    @abstractmethod
    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]: ...

    def _check_parameters(self, lost: bool = False) -> None:
        """Refuse parameters that are wrong, or that a file could not hold unless ``lost``."""
        check_parameters(self, lost)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the model as it was if training fails."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def __getitem__(self: Own, which: Any) -> Own:
        """Return a model of some of the bits: ``model[:32]``, ``model[[3, 5, 8]]``, ``model[0]``."""
        check_is_fitted(self)
        return self._with_bits(chosen_bits(which, len(self.functions_)))

    def _with_bits(self: Own, chosen: list[int]) -> Own:
        """Return a model of some of the bits."""
        part = type(self)(**{**self.get_params(deep=False), "n_bits": len(chosen)})
        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(part, name, value)
        part.functions_ = [self.functions_[i] for i in chosen]
        part._prepare_encoder()
        return part

    # -------------------------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory of its own; ilhash.load reads it.

        Parameters
        ----------
        path : path-like, a directory that is new, or holds a model, which is replaced
        """
        check_is_fitted(self)
        self._check_parameters(lost=True)  # what is wrong with them would be refused by ``load``
        contents = self._to_contents()
        contents.document.update(self._remembered_document())
        contents.card = markdown(self.card())
        write_directory(Path(path), contents)

    def fingerprint(self) -> str:
        """Identify what the model does to vectors: its functions and its origin.

        Returns
        -------
        str, a SHA-256; codes carry it
        """
        check_is_fitted(self)
        contents = self._to_contents()
        blobs = (name.encode() + blob for name, blob in sorted(contents.blobs.items()))
        return sha256_of([*chunks_of_arrays(contents.arrays), *blobs])

    def bit_fingerprints(self) -> list[str]:
        """Identify every bit by itself: the same bit has the same fingerprint in any model.

        Returns
        -------
        list of str, 16 hexadecimal digits each, of a bit's function and the origin that it is relative to
        """
        check_is_fitted(self)
        own = [functions_to_arrays([function]) for function in self.functions_]
        named = [chunks_of_arrays({**arrays, "origin": self.origin_}) for arrays, _ in own]
        blobs = [[name.encode() + blob for name, blob in sorted(files.items())] for _, files in own]
        return [sha256_of([*chunks, *files])[:16] for chunks, files in zip(named, blobs, strict=True)]

    def _to_contents(self) -> Contents:
        arrays, blobs = functions_to_arrays(self.functions_)
        arrays["origin"] = self.origin_
        document = {
            "model": type(self).__name__,
            "parameters": {name: _to_json(value) for name, value in self.get_params(deep=False).items()},
            "n_bits": len(self.functions_),
            "n_features": self.n_features_in_,
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "seed": self.seed_,
            **({"left_out": list(self.left_out_)} if self.left_out_ else {}),
            **self._own_document(),
        }
        return Contents(document, arrays, blobs)

    @classmethod
    def _from_contents(
        cls: type[Own], contents: Contents, trusted: list[str] | None, find_class: Callable[[Record], type[Hasher]]
    ) -> Own:
        """Make a model of what is in its directory; ``find_class`` knows the classes of models inside of it."""
        record, arrays = Record(contents.document, contents.where), dict(contents.arrays)
        model = cls(**_parameters(cls, record.record("parameters")))
        _check_loaded(model, record.where)
        model.origin_ = checked_array(arrays.pop("origin", None), f"origin of {record.where}", np.float32, (None,))
        n_features = record.whole("n_features", 1)
        if len(model.origin_) != n_features:
            raise DamagedFileError(
                f"{record.where} must have 'n_features', {len(model.origin_)} as the origin, got {n_features}"
            )
        where = f"arrays of {record.where}"
        model.functions_ = functions_from_arrays(arrays, contents.blobs, n_features, trusted, where)
        if record.whole("n_bits", 1) != len(model.functions_):
            raise DamagedFileError(
                f"{record.where} must have 'n_bits', {len(model.functions_)} as there are functions, got another number"
            )
        model.n_features_in_ = n_features
        names = record.all_of("feature_names", str)
        if names:
            model.feature_names_in_ = np.asarray(record.all_of("feature_names", str, n=n_features), dtype=object)
        if "left_out" in record:
            model.leave_out(record.all_of("left_out", str))
        model.seed_ = record.whole("seed", most=2**128)
        model._read_own_document(record)
        model._prepare_encoder()
        return model

    def _own_document(self) -> dict[str, Any]:
        """Return what this kind of model adds to the description of a model."""
        return {name: getattr(self, f"{name}_") for name in self._kept if hasattr(self, f"{name}_")}

    def _read_own_document(self, record: Record) -> None:
        """Do the inverse of :meth:`_own_document`."""
        for name, take in self._kept.items():
            if name in record:
                setattr(self, f"{name}_", take(record, name))

    # -------------------------------------------------------------------------------------------- scikit-learn

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_encoder"}  # closures do not travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "functions_"):
            self._prepare_encoder()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.sparse = self.takes_sparse
        return tags


def _pack(margins: NDArray[np.float32]) -> NDArray[np.uint8]:
    return codes.pack(margins > 0)


def with_current_names(kind: type[Hasher], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters that an earlier version wrote down, by the names that they have now.

    Parameters
    ----------
    kind : type, the class of the model
    parameters : mapping of str to anything, as an earlier version or this one calls them

    Returns
    -------
    dict, the same values under the names of this version

    Examples
    --------
    >>> from ilhash import ILH
    >>> with_current_names(ILH, {"n_bits": 8})
    {'n_bits': 8}
    """
    return {kind.renamed.get(name, name): value for name, value in parameters.items()}


def _to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [_to_json(part) for part in value]
    if isinstance(value, Unavailable):
        return {"unavailable": value.description}
    return value if isinstance(value, _PLAIN) else {"unavailable": repr(value)}


def _from_json(name: str, value: Any, record: Record, depth: int = 3) -> Any:
    if isinstance(value, dict):
        return Unavailable(name, Record(value, f"{name!r} of {record.where}").text("unavailable"))
    if isinstance(value, list) and depth:
        parts = [_from_json(name, part, record, depth - 1) for part in value]
        lost = next((part for part in parts if isinstance(part, Unavailable)), None)
        return lost if lost is not None else parts
    if isinstance(value, _PLAIN):
        return value
    raise DamagedFileError(f"{name!r} of {record.where} must be a value or a list of values, got a deeper list")


def _parameters(kind: type[Hasher], record: Record) -> dict[str, Any]:
    """Return the parameters of a model, by the names of this version."""
    known, given = kind._get_param_names(), with_current_names(kind, record.document)
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise DamagedFileError(f"{record.where} must be those of {kind.__name__}, got {unknown[0][:80]!r} too")
    return {name: _from_json(name, value, record) for name, value in given.items()}


def _check_loaded(model: Hasher, where: str) -> None:
    try:
        model._check_parameters(lost=True)
    except (ValueError, TypeError) as error:
        raise DamagedFileError(f"{where} must have parameters that {type(model).__name__} takes: {error}") from None
