"""Where known datasets are offered, and what their files must be. Facts only, no code.

Checksums are those that others have published, and each was looked up, not computed from a download of our own:

mnist          address of torchvision's mirror, as yann.lecun.com is closed to programs; MD5 in torchvision's source,
               and the SHA-256 of the same files in the registry
fashion-mnist  address and MD5 in the README of zalandoresearch/fashion-mnist, SHA-256 in the registry
cifar10        address and MD5 on www.cs.toronto.edu/~kriz/cifar.html, SHA-256 of the files inside in the registry
glove-6b-100d  address on nlp.stanford.edu/projects/glove; the SHA-256 of the archive stands in TensorFlow Datasets, in
               Keras examples and in several copies on Hugging Face, all the same

Not here: the descriptors of MIRFLICKR-1M, for which no published checksum was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Remote:
    """A file on a server: its address, its checksum ("md5:..." or SHA-256) and its size in bytes."""

    url: str
    checksum: str
    n_bytes: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Offer:
    """What must be had for a dataset, and how it becomes the files that are read."""

    files: tuple[Remote, ...]
    unpacked_by: str = ""  # name of a function of _unpacking; the files themselves where there is none

    @property
    def n_bytes(self) -> int:
        """Bytes to be had."""
        return sum(file.n_bytes for file in self.files)


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"

OFFERS: Mapping[str, Offer] = {
    "mnist": Offer(
        (
            Remote(f"{_MNIST}/train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            Remote(f"{_MNIST}/train-labels-idx1-ubyte.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            Remote(f"{_MNIST}/t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            Remote(f"{_MNIST}/t10k-labels-idx1-ubyte.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        )
    ),
    "fashion-mnist": Offer(
        (
            Remote(f"{_FASHION}/train-images-idx3-ubyte.gz", "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            Remote(f"{_FASHION}/train-labels-idx1-ubyte.gz", "md5:25c81989df183df01b3e8a0aad5dffbe", 29_515),
            Remote(f"{_FASHION}/t10k-images-idx3-ubyte.gz", "md5:bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            Remote(f"{_FASHION}/t10k-labels-idx1-ubyte.gz", "md5:bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        )
    ),
    "cifar10": Offer(
        (
            Remote(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "md5:c32a1d4ab5d03f1284b67883e8d87530",
                170_052_171,
            ),
        ),
        unpacked_by="batches_of_cifar10",
    ),
    "glove-6b-100d": Offer(
        (
            Remote(
                "https://nlp.stanford.edu/data/glove.6B.zip",
                "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
                862_182_613,
            ),
        ),
        unpacked_by="vectors_of_glove",
    ),
}
ALIASES = {"glove": "glove-6b-100d"}
