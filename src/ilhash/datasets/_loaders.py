"""From verified bytes to arrays: one function per file format, one per dataset."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ._files import Folder
from ._registry import CIFAR10_BATCHES, CIFAR10_NAMES, DIGIT_NAMES, GARMENTS


# eq=False: comparing arrays with == has no single truth value.
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """A dataset in memory.

    Attributes
    ----------
    name : str, the name it was loaded by
    X : ndarray of shape (n, D), one row per item
    y : ndarray of shape (n,), int64, or None, class of each row, an index into `class_names`
        Where rows have several labels, a sparse array (n, L) of int8: 1 where row i has label `class_names` [j]. Both
        are what ``fit`` and the measures of ``ilhash.evaluation`` take; a row without a label is unknown to them.
    pairs : ndarray of shape (m, 2), int64, or None, rows i < j that are similar
    image_shape : tuple of int or None, what makes a row an image again: (rows, columns) or (channels, rows, columns)
    class_names : tuple of str or None, name of each class
    words : tuple of str or None, word or name of each row
    texts : tuple of str or None, text of each row, of which its vector was made
    n_train : int or None, the first `n_train` rows are the published train part, the others the test part
    """

    name: str
    X: npt.NDArray[Any]
    y: npt.NDArray[np.int64] | scipy.sparse.csr_array | None = None
    pairs: npt.NDArray[np.int64] | None = None
    image_shape: tuple[int, ...] | None = None
    class_names: tuple[str, ...] | None = None
    words: tuple[str, ...] | None = None
    texts: tuple[str, ...] | None = None
    n_train: int | None = None

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, X: {self.X.shape} {self.X.dtype}, {self._supervision()})"

    def _supervision(self) -> str:
        if self.pairs is not None:
            return f"{len(self.pairs)} pairs"
        if self.y is None:
            return "unlabelled"
        if self.y.ndim == 2:
            return f"{self.y.shape[1]} labels"
        return f"{len(np.unique(self.y)) if self.class_names is None else len(self.class_names)} classes"


def idx(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode a gzip-compressed idx file of unsigned bytes."""
    raw = gzip.decompress(data)
    kind, n_dims = raw[2], raw[3]
    if kind != 0x08:
        raise ValueError(f"an idx file must hold unsigned bytes (type 0x08), got type {kind:#04x}")
    shape = struct.unpack_from(f">{n_dims}I", raw, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def npy(data: bytes) -> npt.NDArray[Any]:
    """Decode a .npy file, xz-compressed or not."""
    raw = lzma.decompress(data) if data.startswith(b"\xfd7zXZ\x00") else data
    array: npt.NDArray[Any] = np.load(io.BytesIO(raw), allow_pickle=False)
    return array


def cifar10_pixels(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode one packed batch to rows of red, green and blue planes.

    The file is indexed (channel, image, row, column). It holds differences between neighbouring pixels,
    and red and blue minus green: sums modulo 256 give the pixels back exactly.
    """
    planes = npy(data)
    for axis in (2, 3):
        np.cumsum(planes, axis=axis, dtype=np.uint8, out=planes)
    planes[0] += planes[1]
    planes[2] += planes[1]
    return planes.transpose(1, 0, 2, 3).reshape(planes.shape[1], -1)


def cifar10_records(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode one original batch: each row is the label, then the pixels."""
    return np.frombuffer(data, np.uint8).reshape(-1, 1 + 3 * 32 * 32)


def load_digits(name: str) -> Dataset:
    """Take the digits that scikit-learn carries."""
    # Imported here: it costs half a second that the readers of files need not pay.
    from sklearn.datasets import load_digits as bundled

    X, y = bundled(return_X_y=True)
    X, y = X.astype(np.float32), y.astype(np.int64)
    return Dataset(name=name, X=X, y=y, image_shape=(8, 8), class_names=DIGIT_NAMES)


def load_idx(name: str, folder: Folder, *, class_names: tuple[str, ...]) -> Dataset:
    """Decode the four idx files of MNIST, or of a dataset in its format."""
    train, test = (idx(folder.read(f"{part}-images-idx3-ubyte.gz")) for part in ("train", "t10k"))
    labels = [idx(folder.read(f"{part}-labels-idx1-ubyte.gz")) for part in ("train", "t10k")]
    images = np.concatenate([train, test])
    X, y = images.reshape(len(images), -1), np.concatenate(labels).astype(np.int64)
    shape, n_train = images.shape[1:], len(train)
    return Dataset(name=name, X=X, y=y, image_shape=shape, class_names=class_names, n_train=n_train)


def load_cifar10(name: str, folder: Folder) -> Dataset:
    """Decode the six batches of CIFAR-10, original or packed."""
    original = "test_batch.bin" in folder.sums
    X = np.empty((60_000, 3 * 32 * 32), np.uint8)
    y = np.empty(60_000, np.int64)
    # Straight into place, batch by batch: only one batch is ever held twice.
    for batch, rows, labels in zip(CIFAR10_BATCHES, np.split(X, 6), np.split(y, 6), strict=True):
        if original:
            records = cifar10_records(folder.read(f"{batch}.bin"))
            labels[:], rows[:] = records[:, 0], records[:, 1:]
        else:
            rows[:] = cifar10_pixels(folder.read(f"{batch}.npy.xz"))
    if not original:
        y[:] = np.concatenate([npy(folder.read(f"{part}_labels.npy")) for part in ("train", "test")])
    return Dataset(name=name, X=X, y=y, image_shape=(3, 32, 32), class_names=CIFAR10_NAMES, n_train=50_000)


def load_glove(name: str, folder: Folder) -> Dataset:
    """Decode the word vectors; float16 is how they are stored, not how they are to be computed with."""
    if "vectors.npy" in folder.sums:  # made by `ilhash data get` of the published text
        words = folder.read("words.txt").decode("utf-8").removesuffix("\n").split("\n")
        return Dataset(name=name, X=npy(folder.read("vectors.npy")), words=tuple(words))
    vectors = npy(folder.read("vectors_100k_f16.npy.xz")).astype(np.float32)
    text = lzma.decompress(folder.read("words_100k.txt.xz")).decode("utf-8")
    # Not splitlines: it also breaks at characters that occur inside words.
    return Dataset(name=name, X=vectors, words=tuple(text.removesuffix("\n").split("\n")))


def load_debian_packages(name: str, folder: Folder, target: str) -> Dataset:
    """Decode embeddings and descriptions, and what the target asks for."""
    X = npy(folder.read("embeddings_int8.npy")) * npy(folder.read("embedding_scale.npy"))
    lines = lzma.decompress(folder.read("packages.tsv.xz")).decode("utf-8").removesuffix("\n").split("\n")
    words, texts = zip(*(line.split("\t") for line in lines), strict=True)
    packages = partial(Dataset, name=name, X=X, words=words, texts=texts)
    if target == "pairs":
        return packages(pairs=npy(folder.read("dependencies.npy")).astype(np.int64))
    if target == "source":
        return packages(y=npy(folder.read("source.npy")).astype(np.int64))
    names = json.loads(folder.read("names.json"))
    if target == "section":
        return packages(y=npy(folder.read("section.npy")).astype(np.int64), class_names=tuple(names["sections"]))
    with np.load(io.BytesIO(folder.read("tags.npz")), allow_pickle=False) as tags:
        own = tags["indices"].astype(np.int32)
        y = scipy.sparse.csr_array((np.ones(len(own), np.int8), own, tags["indptr"]), (len(X), len(names["tags"])))
    y.sort_indices()
    return packages(y=y, class_names=tuple(names["tags"]))


LOADERS: Mapping[str, Callable[[str, Folder], Dataset]] = {
    "mnist": partial(load_idx, class_names=DIGIT_NAMES),
    "fashion-mnist": partial(load_idx, class_names=GARMENTS),
    "cifar10": load_cifar10,
    "glove-6b-100d": load_glove,
}
