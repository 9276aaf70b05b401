"""Write one small sample of every kind of file, and the answers that the installed ilhash gives with it.

python tests/samples/write.py NAME

makes the folder NAME beside this script (README.md says which version wrote those that are there). Samples are never
written again: a later version that writes files in another way gets a folder of its own.
"""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import ilhash
from ilhash import ILH, HammingIndex, Mix, experiments, methods
from ilhash.datasets import _computed as computed

COLUMNS = ["length", "width", "height", "weight", "Größe", "colour"]
SMALL = {"n_bits": 4, "n_train": 60, "n_similar": 5, "n_dissimilar": 5, "random_state": 3}
KERNEL = {"hash_function": "kernel", "n_centers": 8, **SMALL}
BITS = {"n_bits": 4, "random_state": 3}
CENTERS = {"n_centers": 8, **BITS}
EXPERIMENTS = ["unseen-classes", "asymmetric-search", "pruned-and-mixed"]


def vectors(n, seed):
    """Five overlapping clouds in six dimensions."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 5
    centres = np.random.default_rng(0).normal(size=(5, 6)) * 3
    return (centres[y] + rng.normal(size=(n, 6))).astype(np.float32), y


def models():
    """One of every kind, with other values than the defaults of what files keep."""
    return {
        "ilh-linear": ILH(**{**SMALL, "n_similar": (4, 6)}),
        "ilh-features": ILH(diversity="itf", n_features=3, sampling="random", **SMALL),
        "ilh-kernel-common": ILH(**KERNEL),
        "ilh-kernel-private": ILH(centers="private", diversity="itf", kernel_width=4.0, **KERNEL),
        "ilh-kernel-pool": ILH(centers="pool", **KERNEL),
        "ilh-boosted": ILH(hash_function="trees", n_trees=3, tree_depth=2, learning_rate=0.3, **SMALL),
        "ilh-tree": ILH(hash_function=DecisionTreeClassifier(max_depth=2), **SMALL),
        "ilh-skops": ILH(hash_function=["linear", GaussianNB()], **SMALL),
        "ilh-names": ILH(scaling="whole", C=0.1, mac=[0.1, 1.0], **SMALL),
        "mix": Mix([ILH(**SMALL), methods.ITQ(n_bits=3, max_iter=7)]),
        "sign": methods.Sign(),
        "lsh": methods.LSH(n_bits=60, random_state=3),
        "tpca": methods.TPCA(**BITS),
        "baggedtpca": methods.BaggedTPCA(member_bits=2, n_train=50, **BITS),
        "itq": methods.ITQ(max_iter=7, **BITS),
        "sh": methods.SH(**BITS),
        "agh": methods.AGH(n_anchors=8, n_nearest=3, **BITS),
        "agh-layers": methods.AGH(n_anchors=8, n_nearest=3, layers=2, **BITS),
        "orthogonalprojection": methods.OrthogonalProjection(max_iter=9, **BITS),
        "ba": methods.BA(max_iter=3, **BITS),
        "ccaitq": methods.CCAITQ(max_iter=8, regularization=0.001, **BITS),
        "sth": methods.STH(n_neighbors=12, **BITS),
        "splh": methods.SPLH(eta=0.9, **BITS),
        "bre": methods.BRE(max_iter=2, n_weights=5, **CENTERS),
        "mlh": methods.MLH(max_iter=60, batch_size=20, learning_rate=0.3, **BITS),
        "ksh": methods.KSH(max_iter=11, **CENTERS),
        "kshcut": methods.KSHcut(max_iter=2, n_similar=5, n_dissimilar=5, **BITS),
        "kshcut-kernel": methods.KSHcut(hash_function="kernel", n_similar=5, n_dissimilar=5, **CENTERS),
        "fasthash": methods.FastHash(
            n_estimators=4, max_depth=2, learning_rate=0.3, n_similar=5, n_dissimilar=5, **BITS
        ),
        "sdh": methods.SDH(max_iter=2, **CENTERS),
        "classifiercode": methods.ClassifierCode(**BITS),
    }


def answers(model, n=12):
    """Return vectors with the codes and margins of a model; none so near to a boundary that rounding moves a bit."""
    X, _ = vectors(200, seed=2)
    margins = model.decision_function(framed(model, X))
    sure = np.flatnonzero(np.abs(margins).min(axis=1) > 0.01 * np.median(np.abs(margins)))[:n]
    if len(sure) < n:
        raise ValueError(f"{n} vectors must be away from all boundaries, got {len(sure)} of {model!r}")
    return {"vectors": X[sure], "codes": model.transform(framed(model, X[sure])), "margins": margins[sure]}


def framed(model, X):
    """Return vectors as the model knows them, with names of features where it has some."""
    return pd.DataFrame(X, columns=COLUMNS) if hasattr(model, "feature_names_in_") else X


def write_models(folder):
    """Save one of every kind."""
    X, y = vectors(150, seed=1)
    made = models()
    missing = set(methods.available()) - {type(model).__name__ for model in made.values()}
    if missing:
        raise ValueError(f"every method must have a sample, got none of {sorted(missing)}")
    for name, model in made.items():
        model.fit(pd.DataFrame(X, columns=COLUMNS) if name == "ilh-names" else X, y)
        model.save(folder / name)
        np.savez_compressed(folder / f"{name}.npz", **answers(model))


def write_codes(folder, model):
    """Encode as the command does: 60 bits, so that padding counts; a file and shards."""
    X, _ = vectors(50, seed=4)
    np.save(folder / "vectors.npy", X)
    encode = [sys.executable, "-m", "ilhash", "encode", str(model), "vectors.npy"]
    subprocess.run([*encode, "-o", "codes.npy"], cwd=folder, check=True)
    subprocess.run([*encode, "-o", "shards", "--rows-per-shard", "20"], cwd=folder, check=True)
    np.save(folder / "answers.npy", ilhash.load(folder / model).transform(X))


def write_indexes(folder):
    """Save indexes of numbers, of texts with margins, and one that was changed."""
    rng = np.random.default_rng(5)
    margins = rng.normal(size=(61, 20)).astype(np.float32)
    codes = ilhash.codes.pack(margins > 0)
    codes[1] = codes[0]  # equal codes are kept once
    numbers = rng.permutation(1000)[:61]
    texts = np.array([f"bild-{number}-ü" for number in numbers], object)
    HammingIndex(codes, n_bits=20, ids=numbers).save(folder / "numbers")
    HammingIndex(codes, n_bits=20, ids=texts, margins=margins).save(folder / "texts")
    with HammingIndex.open(folder / "changed", n_bits=20) as index:
        for first, last in ((0, 40), (40, 55), (55, 61)):
            index.add(codes[first:last], numbers[first:last])
        index.remove(numbers[[2, 7, 30, 41]])
    for name in ("numbers", "texts", "changed"):
        with HammingIndex.open(folder / name, writable=False) as index:
            np.savez_compressed(folder / f"{name}.npz", **found_in(index, rng))


def found_in(index, rng):
    """Return queries and what an index finds."""
    margins = rng.normal(size=(7, 20)).astype(np.float32)
    queries = ilhash.codes.pack(margins > 0)
    hits, weighted = index.search(queries, 9), index.search_asymmetric(margins, 9)
    near = index.within(queries, 7)
    out = {"margins": margins, "queries": queries, "all_ids": index.ids, "all_codes": index.codes(index.ids)}
    out |= {"ids": hits.ids, "distances": hits.distances}
    out |= {"weighted_ids": weighted.ids, "weighted_distances": weighted.distances}
    out |= {"near_offsets": near.offsets, "near_ids": near.ids, "near_distances": near.distances}
    if "-" in str(index.ids[0]):
        rescored = index.search_margins(margins, 9)
        out |= {"rescored_ids": rescored.ids, "rescored_distances": rescored.distances}
    return {name: array.astype(str) if array.dtype == object else array for name, array in out.items()}


def write_checkpoints(folder):
    """Keep the bits of a run that ended, and those of one of which half was lost."""
    X, y = vectors(150, seed=1)
    np.savez_compressed(folder / "data.npz", X=X, y=y)
    kinds = ["linear", "kernel", DecisionTreeClassifier(max_depth=2)]
    runs = {"half": ILH(**{**SMALL, "n_bits": 6}), "finished": ILH(hash_function=kinds, n_centers=8, **SMALL)}
    for name, model in runs.items():
        model.fit(X, y, checkpoint=folder / name)
        np.savez_compressed(folder / f"{name}.npz", **answers(model))
    for bit in (1, 3, 4):
        (folder / "half" / f"bit-{bit:06d}.safetensors").unlink()


def write_experiments(folder):
    """Compute cells at the smallest scale."""
    _, summary = experiments.reproduce(EXPERIMENTS, scale="smoke", folder=folder, jobs=2, command=Path(__file__).name)
    if summary.failed:
        raise ValueError(f"every cell must be computed, got {summary.failed}")
    shutil.rmtree(folder / "data")


def write_computed(folder):
    """Keep a few rows as a computed dataset is kept, under the name of one."""
    rng = np.random.default_rng(6)
    arrays = {"X": rng.normal(size=(5, 8)).astype(np.float32), "y": np.arange(5)}
    computed._keep(folder / "cifar10-gist-v1-9a5bcfec531a52ec.safetensors", arrays)
    np.savez_compressed(folder / "answers.npz", **arrays)


def main(name):
    """Write all samples."""
    root = Path(__file__).resolve().parent / name
    root.mkdir()
    for part in ("models", "codes", "indexes", "checkpoints", "computed"):
        (root / part).mkdir()
    about = {"ilhash": ilhash.__version__, "python": platform.python_version(), "numpy": np.__version__}
    about |= {"scikit-learn": sklearn.__version__, "core_simd": ilhash.core_simd()}
    (root / "about.json").write_text(json.dumps(about, indent=1) + "\n")
    write_models(root / "models")
    write_codes(root / "codes", Path("..", "models", "lsh"))
    write_indexes(root / "indexes")
    write_checkpoints(root / "checkpoints")
    write_experiments(root / "experiments")
    write_computed(root / "computed")


if __name__ == "__main__":
    main(*sys.argv[1:])
