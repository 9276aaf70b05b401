"""Endless handwritten digits: image i is an elastic deformation of a real digit, made from (seed, i) alone.

The field of displacements is random arrows on a coarse grid, spread by cubic B-splines, plus a slight rotation, change
of size and shift (after Simard, Steinkraus and Platt, ICDAR 2003). The kernel (src/core/digits.cpp) computes with whole
numbers only; here strengths become its whole numbers by additions, multiplications and roundings, which IEEE arithmetic
defines to the last bit. So the bytes are the same on every machine.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ilhash import _core
from ilhash._checks import check_choice, check_threads, is_whole
from ilhash.storage import (
    DamagedFileError,
    Record,
    Sealed,
    check_sha256,
    new_folder,
    npy_header,
    open_file,
    parse_json,
    read_file,
    sha256_of_file,
    write_npy,
)

from ._catalogue import load

SIDE = 28  # lengths are given in pixels of an image of this side, whatever the side of the source
MARGIN = 5.0  # within it, displacements across the border fade to none
TICKS, UNIT = 1024, 65_536  # the kernel's fractions of a pixel, and of one
# Mean length of the field for knots uniform in -1 .. 1: each component has variance 1/3 (151/315)^2, where 151/315 is
# the mean sum of squares of the weights of a cubic B-spline; the mean length of two normal components is sqrt(pi/2) of
# their deviation.
MEAN_OF_UNIT_KNOTS = 151 / 315 * math.sqrt(math.pi / 6)
# The least and the most of each strength, in the order of the parameters.
LIMITS = {"displacement": (0, 5), "smoothness": (4, 28), "rotation": (0, 45), "scale": (0, 0.5), "shift": (0, 8)}
END = 2**63

_ABOUT = Sealed("about.json", "written infinite digits", 1, kind="infinite digits")
_AGAIN = "remove the folder and write it again"

IMAGES_PER_TASK = 1_024
IMAGES_PER_BLOCK = 32_768


class InfiniteDigits:
    """An endless set of handwritten digits, any slice of which can be made anywhere, byte for byte.

    Each pass over the source is a fresh permutation of it, so every source image is used equally often; a new
    deformation is drawn for every image.

    Parameters
    ----------
    source : {"mnist", "digits"}
        What is deformed: MNIST (28 x 28, values 0 to 255), which must be in the folder of datasets, or the digits
        bundled with scikit-learn (8 x 8, values 0 to 16).
    part : {"train", "test", "all"}
        Part of the source. The bundled digits are not split: all of them are "train".
    seed : int, another seed gives another endless set
    displacement : float
        Mean length of the elastic displacement, in pixels of a 28 x 28 image (other sides: in proportion), away from
        the border. Towards it the component across fades to none, so that no digit is pushed out.
    smoothness : float, distance between the random arrows of the field, in the same pixels; less makes strokes shaky
    rotation : float, largest rotation either way, in degrees
    scale : float, largest relative change of size either way
    shift : float, largest shift either way in each direction, in the same pixels
    data_home : path-like, optional, as for `load`

    Examples
    --------
    >>> digits = InfiniteDigits("digits", seed=0)
    >>> X, y = digits[1_000_000:1_000_003]
    >>> X.shape, X.dtype, y.shape
    ((3, 64), dtype('uint8'), (3,))
    >>> bool((X == digits[999_999:1_000_003][0][1:]).all())
    True
    """

    def __init__(
        self,
        source: str = "mnist",
        *,
        part: str = "train",
        seed: int = 0,
        displacement: float = 1.25,
        smoothness: float = 8.0,
        rotation: float = 10.0,
        scale: float = 0.1,
        shift: float = 1.0,
        data_home: str | os.PathLike[str] | None = None,
    ) -> None:
        self.source, self.part = source, part
        self.seed = _whole("seed", seed, below=2**64)
        strengths = displacement, smoothness, rotation, scale, shift
        self.strengths = {name: _strength(name, value) for name, value in zip(LIMITS, strengths, strict=True)}
        images, labels, self._first_row = _load_part(source, part, data_home)
        self._images, self._labels = np.ascontiguousarray(images, dtype=np.uint8), labels
        side = math.isqrt(images.shape[1])
        self.image_shape = (side, side)
        self._limits = _limits(side, **self.strengths)

    def __repr__(self) -> str:
        strengths = ", ".join(f"{name}={value:g}" for name, value in self.strengths.items())
        return f"InfiniteDigits({self.source!r}, part={self.part!r}, seed={self.seed}, {strengths})"

    def __getitem__(self, rows: slice) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Images and labels of ``[start:stop]``."""
        if not isinstance(rows, slice) or rows.stop is None or rows.step not in (None, 1):
            raise TypeError(f"an endless set takes slices start:stop, got {rows!r}")
        return self.images(0 if rows.start is None else rows.start, rows.stop)

    def images(
        self, start: int, stop: int, *, n_threads: int = 1
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Make the images start, ..., stop - 1.

        Parameters
        ----------
        start, stop : int, any numbers from 0 on: image 10**15 takes no longer than image 0
        n_threads : int, the bytes are the same for any number; -1 for one per core

        Returns
        -------
        X : ndarray of shape (stop - start, 784 or 64), uint8
        y : ndarray of shape (stop - start,), int64, label of the digit that was deformed
        """
        span = _span(start, stop)
        X = np.empty((span.stop - span.start, self._images.shape[1]), np.uint8)

        def make(first: int) -> None:
            rows = X[first : first + IMAGES_PER_TASK]
            _core.digit_images(self._images, self._limits, self.seed, span.start + first, rows)

        with ThreadPoolExecutor(check_threads(n_threads)) as pool:
            for _ in pool.map(make, range(0, len(X), IMAGES_PER_TASK)):
                pass
        return X, self.labels(start, stop)

    def labels(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the labels of the images start, ..., stop - 1, without making them.

        Parameters
        ----------
        start, stop : int, as for `images`

        Returns
        -------
        int64 array (stop - start,), one label per image
        """
        return self._labels[self._drawn(start, stop)]

    def source_rows(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the rows of the source dataset that the images start, ..., stop - 1 are made from.

        Parameters
        ----------
        start, stop : int, as for `images`

        Returns
        -------
        int64 array (stop - start,), one row per image
        """
        return self._first_row + self._drawn(start, stop)

    def displacements(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        """Where the pixels of images start, ..., stop - 1 take their grey from, relative to where they stand.

        Parameters
        ----------
        start, stop : int, as for `images`

        Returns
        -------
        ndarray of shape (stop - start, 2, side, side), float32, rightwards and downwards, in pixels of the source
        """
        span = _span(start, stop)
        side, _ = self.image_shape
        fields = np.empty((span.stop - span.start, 2, side * side), np.int32)
        _core.digit_fields(self._limits, self.seed, span.start, fields)
        return fields.reshape(-1, 2, side, side).astype(np.float32) / np.float32(TICKS)

    def write(
        self,
        path: str | os.PathLike[str],
        n: int,
        start: int = 0,
        *,
        n_threads: int = 1,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write n images to a new folder, block by block, so that there may be more than memory holds.

        Parameters
        ----------
        path : path-like
            The folder. It holds ``X.npy`` and ``y.npy`` (`open_written` maps them) and ``about.json``, which has the
            arguments that make them again and their SHA-256, and appears when they are complete.
        n, start : int, images start, ..., start + n - 1
        n_threads : int, as for `images`
        progress : callable, optional, called with the number of images that are written, and n

        Returns
        -------
        pathlib.Path, the folder

        Raises
        ------
        ValueError
            Something of that name exists.
        OSError
            The disk is full, or the folder cannot be made; nothing is left.
        """
        n = _whole("n", n)
        span = _span(start, _whole("start", start) + n)
        blocks = [(a, min(a + IMAGES_PER_BLOCK, span.stop)) for a in range(span.start, span.stop, IMAGES_PER_BLOCK)]
        threads = check_threads(n_threads)

        def made() -> Iterator[npt.NDArray[np.uint8]]:
            for first, last in blocks:
                yield self.images(first, last, n_threads=threads)[0]
                if progress is not None:
                    progress(last - span.start, n)

        with new_folder(Path(path)) as folder:
            write_npy(folder / "X.npy", "u1", (n, self._images.shape[1]), made())
            write_npy(folder / "y.npy", "<i8", (n,), (self.labels(*block) for block in blocks))
            sums = {name: sha256_of_file(folder / name) for name in ("X.npy", "y.npy")}
            about = {"arguments": self._arguments(), "start": span.start, "n": n, "sha256": sums}
            (folder / _ABOUT.name).write_bytes(_ABOUT.to_bytes(about))
        return Path(path)

    def open_written(
        self, path: str | os.PathLike[str], n: int, start: int = 0
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Open n images that `write` put in a folder; every byte is read once and compared with its SHA-256.

        Parameters
        ----------
        path : path-like, the folder
        n, start : int, as they were written

        Returns
        -------
        X : ndarray of shape (n, 784 or 64), uint8, a read-only memory map
        y : ndarray of shape (n,), int64

        Raises
        ------
        ilhash.StorageError
            The folder holds other images, or files that are not as they were written.
        """
        folder = Path(path)
        wanted = {"arguments": self._arguments(), "start": _whole("start", start), "n": _whole("n", n)}
        sums = _sums(folder, wanted)
        shapes = {"X.npy": ("u1", (n, self._images.shape[1])), "y.npy": ("<i8", (n,))}
        X, y = (_mapped(folder / name, dtype, shape) for name, (dtype, shape) in shapes.items())
        for name, wanted_sum in sums.items():
            check_sha256(folder / name, wanted_sum, sha256_of_file(folder / name), f": {_AGAIN}")
        labels = np.array(y)
        if not np.isin(labels, self._labels).all():
            raise DamagedFileError(f"{folder / 'y.npy'} must hold labels of {self.source!r}, got others: {_AGAIN}")
        return X, labels

    def _arguments(self) -> dict[str, Any]:
        return {"source": self.source, "part": self.part, "seed": self.seed, **self.strengths}

    def _drawn(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        span = _span(start, stop)
        return _core.digit_sources(len(self._images), self.seed, span.start, span.stop - span.start)


# What was written before -----------------------------------------------------------------------------------


def _sums(folder: Path, wanted: dict[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the files of a folder that holds what is wanted; none where it was written without them."""
    file = folder / _ABOUT.name
    data = read_file(file)
    found = parse_json(data, file, f"the description of {_ABOUT.holder}")
    sealed = "format" in found
    if sealed:
        found = _ABOUT.from_bytes(data, file)
        about = {key: found.get(key) for key in wanted}
    else:  # as the version before wrote it, the arguments beside the others
        about = {"arguments": {key: found.get(key) for key in wanted["arguments"]}}
        about |= {key: found.get(key) for key in ("start", "n")}
    if about != wanted:
        raise DamagedFileError(f"{folder} must hold the images of {wanted}, got those of {about}: {_AGAIN}")
    if not sealed:
        return {}
    sums = Record(found, str(file)).record("sha256")
    return {name: sums.text(name, "[0-9a-f]{64}") for name in ("X.npy", "y.npy")}


def _mapped(path: Path, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Map a .npy file that must be exactly as it is written for a type and a shape."""
    header = npy_header(dtype, shape)
    size = len(header) + math.prod(shape) * np.dtype(dtype).itemsize
    with open_file(path) as file:
        there = os.fstat(file.fileno()).st_size
        if file.read(len(header)) != header or there != size:
            raise DamagedFileError(f"{path} must be {dtype} of shape {shape} in {size} bytes, got {there}: {_AGAIN}")
        return np.memmap(file, dtype, "r", len(header), shape)


# What the kernel needs ------------------------------------------------------------------------------------


def _load_part(
    source: str, part: str, data_home: str | os.PathLike[str] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], int]:
    """Images and labels of a part of the source, and the first of its rows."""
    parts = {"mnist": ("train", "test", "all"), "digits": ("train", "all")}
    check_choice("source", source, tuple(parts))
    if not isinstance(part, str) or part not in parts[source]:
        raise ValueError(f"part must be one of {', '.join(map(repr, parts[source]))} for {source!r}, got {part!r}")
    data = load(source, data_home)
    n_train = data.n_train or len(data.X)
    rows = {"train": slice(0, n_train), "test": slice(n_train, None), "all": slice(0, None)}[part]
    return data.X[rows], np.asarray(data.y)[rows], rows.start


class _Limits(NamedTuple):
    """The whole numbers of the kernel, in the order of its struct Deformation, which explains them."""

    side: int
    amplitude: int
    spacing: int
    shift: int
    margin: int
    tan_half_angle: int
    scale: int


def _limits(
    side: int, *, displacement: float, smoothness: float, rotation: float, scale: float, shift: float
) -> _Limits:
    """Turn strengths into the whole numbers of the kernel."""
    ticks = TICKS * side / SIDE
    # tan by its series, good to 1e-4 at 45 degrees: the last bit of math.tan depends on the machine.
    half = rotation * math.pi / 360
    square = half * half
    tangent = half * (1 + square / 3 + square * square * 2 / 15)
    return _Limits(
        side=side,
        amplitude=round(displacement / MEAN_OF_UNIT_KNOTS * ticks),
        spacing=round(smoothness * ticks),
        shift=round(shift * ticks),
        margin=round(MARGIN * ticks),
        tan_half_angle=round(tangent * UNIT),
        scale=round(scale * UNIT),
    )


# What a person may get wrong ------------------------------------------------------------------------------


def _strength(name: str, value: Any) -> float:
    low, high = LIMITS[name]
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (number and low <= value <= high):
        raise ValueError(f"{name} must be a number from {low} to {high}, got {value!r}")
    return float(value)


def _whole(name: str, value: Any, below: int = END) -> int:
    if not (is_whole(value) and 0 <= value < below):
        raise ValueError(f"{name} must be a whole number from 0 to 2**{below.bit_length() - 1} - 1, got {value!r}")
    return int(value)


def _span(start: int, stop: int) -> range:
    span = range(_whole("start", start), _whole("stop", stop))
    if span.start > span.stop:
        raise ValueError(f"stop must not be less than start, got start {start} and stop {stop}")
    return span
