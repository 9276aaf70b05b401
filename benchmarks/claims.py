"""What becomes of the paper's claims that do not hold, or hold partly, when the protocol is corrected.

python benchmarks/claims.py [names of functions below] [--data FOLDER] [--results FILE]

Each function tests one correction, or one reason, and returns plain numbers: precision@500 on CIFAR-10 (58,000 base
points) or precision@10,000 on infinite MNIST (1,000,000) unless it says otherwise, N = 5,000, seeds as it states them.
They go to src/ilhash/experiments/claims/corrections.json, from which the page of `ilhash reproduce report` tells them
beside the literal verdicts; src/ilhash/experiments/claims/corrections.py says what they mean. 40 minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from ilhash import ILH, __version__, codes
from ilhash.diversity import seed_for
from ilhash.evaluation import orthogonality, weight_dot_products
from ilhash.experiments.engine.problems import Problem, load_problem
from ilhash.methods import KSH, SDH, STH, ClassifierCode, KSHcut
from ilhash.methods._base import linear_functions
from ilhash.methods._ksh import PairResidue
from ilhash.methods._ksh_loss import PairLoss, label_pairs

N = 5_000
RESULTS = Path(__file__).parents[1] / "src" / "ilhash" / "experiments" / "claims" / "corrections.json"
PAPER = {"n_train": N, "n_similar": 100, "n_dissimilar": 100, "start": "random", "scaling": "columns"}
FOLDER = Path(tempfile.gettempdir(), "ilhash-claims")

Numbers = dict[str, Any]


# ------------------------------------------------------------------------------------------------ KSH, other than ours


class ZeroResidue(PairResidue):
    """KSH's residue b y - sum of h h' where some pairs are given and all others count as 0, not as unknown."""

    def __init__(self, y: Any, n_bits: int) -> None:
        super().__init__(y, n_bits)
        self.h = np.empty((y.shape[0], 0), np.float32)

    def add(self, h):
        """Take the product h h' of a bit off."""
        self.h = np.column_stack([self.h, h])

    def times(self, v):
        """Return R v."""
        return self._R @ v - self.h @ (v @ self.h)

    def loss(self):
        """Return the mean of (h_n'h_m / b - y_nm)^2 over the given pairs."""
        judged = PairResidue(self._R / self._n_bits, self._n_bits)
        for h in self.h.T:
            judged.add(h)
        return judged.loss()


class DenseResidue(ZeroResidue):
    """The same as one matrix (N, N) of numbers, as the program of KSH's authors keeps it, for all pairs."""

    def __init__(self, y: Any, n_bits: int) -> None:
        super().__init__(y, n_bits)
        self.whole = self._R.toarray()

    def add(self, h):
        """Take it off the matrix."""
        super().add(h)
        self.whole -= np.outer(h, h)

    def times(self, v):
        """Return R v."""
        return self.whole @ v


class ZeroKSH(KSH):
    """KSH with ``n_pairs`` neighbours of each point; other pairs count as 0 (the library's asks nothing of them)."""

    pair_residue: ClassVar[type[PairResidue]] = ZeroResidue


class DenseKSH(ZeroKSH):
    """With a matrix of N x N numbers."""

    pair_residue: ClassVar[type[PairResidue]] = DenseResidue


class _Linear:
    """A kernel method whose functions are linear: its features are the standardised vectors themselves."""

    def _learn(self, data):
        training = data.training_set()
        centered = training.centered()
        spread = np.maximum(centered.std(axis=0), 1e-6 * centered.std())
        weights, bias = self._weights(centered / spread, training, data.seed)
        return linear_functions(training.rows, weights / spread[:, None], -bias)


class LinearKSH(_Linear, KSH):
    """KSH, all pairs, linear functions."""


class LinearZeroKSH(_Linear, ZeroKSH):
    """KSH, 100 + 100 neighbours, linear functions."""


class LinearSDH(_Linear, SDH):
    """SDH, linear functions."""


# ------------------------------------------------------------------------------------------------ measuring


def problem(dataset: str) -> Problem:
    return load_problem("paper", dataset, FOLDER)


def precision(model: Any, on: Problem, bits: Sequence[int]) -> dict[str, float]:
    """Return precision at the headline k of prefixes of the codes."""
    found = on.measure(model.transform(on.X), model.transform(on.queries), list(bits))
    return {str(b): float(value) for b, value in zip(bits, found.precision[:, on.at_k], strict=True)}


def ilht(on: Problem, bits: int, seed: int = 0, **other: Any) -> ILH:
    return ILH(n_bits=bits, random_state=seed, **{**PAPER, **other}).fit(on.X, on.y)


def anew(kind: Callable[..., Any], on: Problem, all_bits: Sequence[int], seed: int = 0, **own: Any) -> dict[str, float]:
    """Return precision of a method that is trained anew for every number of bits."""
    found = {}
    for bits in all_bits:
        model = kind(n_bits=bits, random_state=seed, **{"n_train": N, **own}).fit(on.X, on.y)
        found |= precision(model, on, [bits])
    return found


def seconds_of(action: Callable[[], Any], rounds: int = 1) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


# ------------------------------------------------------------------------------------------------ one per correction


def linear_on_both_sides() -> Numbers:
    """Give KSH and SDH linear functions, as figure 4 says of all, KSH also 100 + 100 neighbours; seed 0."""
    found: Numbers = {}
    for dataset in ("images", "digits"):
        on, bits = problem(dataset), (32, 200)
        found[dataset] = {
            "KSH": anew(LinearKSH, on, bits),
            "KSH, 100 + 100": anew(LinearZeroKSH, on, bits, n_pairs=100),
            "SDH": anew(LinearSDH, on, bits),
        }
    return found


def kernels_on_both_sides() -> Numbers:
    """Kernel functions of 500 common centres for all, on infinite MNIST, scaled as a whole; seed 0."""
    on, bits, kernel = problem("digits"), (32, 200), {"hash_function": "kernel", "scaling": "whole"}
    found = {
        "ILHt": precision(ilht(on, 200, **kernel), on, bits),
        "ILHt, columns": precision(ilht(on, 200, hash_function="kernel"), on, bits),
        "KSH": anew(KSH, on, bits, scaling="whole"),
        "KSH, 100 + 100": anew(ZeroKSH, on, bits, scaling="whole", n_pairs=100),
        "KSHcut": anew(KSHcut, on, bits, **kernel),
        "STH": anew(STH, on, bits, **kernel),
        "SDH": anew(SDH, on, bits, scaling="whole"),
        "class, ECOC": anew(ClassifierCode, on, bits, code="ecoc", **kernel),
        "class, scores": anew(ClassifierCode, on, bits, code="scores", **kernel),
    }
    return found


def kernels_more_seeds() -> Numbers:
    """ILHt and its nearest rival of kernels_on_both_sides, KSH with all pairs, at 200 bits; seeds 1, 2."""
    on = problem("digits")
    found: Numbers = {"ILHt": [], "KSH": []}
    for seed in (1, 2):
        model = ilht(on, 200, seed, hash_function="kernel", scaling="whole")
        found["ILHt"].append(precision(model, on, [200])["200"])
        found["KSH"].append(anew(KSH, on, [200], seed, scaling="whole")["200"])
    return found


def kernel_neighbors() -> Numbers:
    """KSH with the paper's 100 + 100 neighbours, kernel functions, CIFAR-10; seed 0."""
    return {"KSH, 100 + 100": anew(ZeroKSH, problem("images"), (32, 200), n_pairs=100)}


def all_labels() -> Numbers:
    """Train SDH and KSH on all 58,000 points of CIFAR-10, which ILHt's bits see together; 500 centres; seed 0."""
    on = problem("images")
    return {kind.__name__: anew(kind, on, [200], n_train=len(on.X)) for kind in (SDH, KSH)}


def _loss(pairs: Any, bits: np.ndarray) -> float:
    """Return the mean over the judged pairs of (z_n'z_m / b - y_nm)^2."""
    return PairLoss(pairs, np.where(bits > 0, 1, -1).astype(np.int8)).value()


def same_pairs() -> Numbers:
    """KSH and KSHcut with the same pairs and kernels on CIFAR-10: loss on those pairs, precision, seconds; seed 0."""
    on, found = problem("images"), {}
    for bits in (32, 64, 128):
        cut = KSHcut(n_bits=bits, n_train=N, hash_function="kernel")
        own: Numbers = {"KSHcut": {"seconds": seconds_of(lambda model=cut: model.fit(on.X, on.y))}}
        rows = cut.training_rows(0, on.X, on.y)
        rivals = {"KSH, 0 elsewhere": ZeroKSH, "KSH, these pairs only": KSH, "KSH, N x N matrix": DenseKSH}
        for name, kind in rivals.items():
            model = kind(n_bits=bits, n_train=N, n_pairs=100)
            own[name] = {"seconds": seconds_of(lambda model=model: model.fit(on.X, on.y))}
            own[name] |= {"loss": model.report_["loss"], "precision": precision(model, on, [bits])[str(bits)]}
        pairs = label_pairs(np.eye(10, dtype=np.float32)[on.y[rows]], 100, 100, seed_for(0, "graph"))
        own["KSHcut"] |= {
            "loss of its codes": cut.report_["loss"][-1],
            "loss": _loss(pairs, codes.unpack(cut.transform(on.X[rows]), bits)),
            "precision": precision(cut, on, [bits])[str(bits)],
        }
        found[str(bits)] = own
    return found


def query_time() -> Numbers:
    """Seconds of a query with d of D features, every weight multiplied once and no other; CIFAR-10, 128 bits, seed 0.

    ``sparse``: weights as a sparse matrix, one code for every d; ``dense``: one product over all features, which is
    what the library does from d/D = .25 on; ``kernel``: 16 kernel functions with features and centres of their own.
    """
    on, found = problem("images"), {}
    batch = np.ascontiguousarray(on.X[:2_000].T, dtype=np.float32)
    one = np.ascontiguousarray(batch[:, 0])
    for share in (0.1, 0.25, 0.5, 1.0):
        model = ilht(on, 128, diversity="f", n_features=share)
        weights = model.weights().astype(np.float32)
        sparse = scipy.sparse.csr_array(weights)
        kernel = ilht(on, 16, diversity="f", n_features=share, hash_function="kernel", centers="private")
        found[str(share)] = {
            "multiplications": sparse.nnz / weights.size,
            "sparse": seconds_of(lambda w=sparse: w @ batch, 31) / batch.shape[1],
            "sparse, lone": seconds_of(lambda w=sparse: [w @ one for _ in range(200)], 31) / 200,
            "dense": seconds_of(lambda w=weights: w @ batch, 31) / batch.shape[1],
            "kernel": seconds_of(lambda m=kernel: m.transform(on.X[:2_000]), 7) / 2_000,
        }
    return found


def one_set_resampled() -> Numbers:
    """Bootstrap as in bagging: each bit resamples one set of 5,000 points; seeds 0 to 2 (digits), 0 to 4 (images)."""
    found: Numbers = {}
    for dataset, n_seeds in (("images", 5), ("digits", 3)):
        on, found[dataset] = problem(dataset), []
        for seed in range(n_seeds):
            rows = np.sort(np.random.default_rng(seed).permutation(len(on.X))[:N])
            model = ILH(n_bits=200, random_state=seed, sampling="bootstrap", **PAPER).fit(on.X[rows], on.y[rows])
            found[dataset].append(precision(model, on, (64, 176, 200)))
    distinct = [len(np.unique(np.random.default_rng(seed).integers(0, 1_000_000, N))) for seed in range(20)]
    return {**found, "distinct of 5,000 drawn from 1,000,000": float(np.mean(distinct))}


def all_features_whole() -> Numbers:
    """ILHitf on infinite MNIST over d/D, pixels scaled as a whole, 128 bits; seeds 0 to 2."""
    on = problem("digits")
    return {
        str(share): [
            precision(ilht(on, 128, seed, diversity="itf", n_features=share, scaling="whole"), on, [128])["128"]
            for seed in range(3)
        ]
        for share in (0.5, 0.75, 1.0)
    }


def _cut(on: Problem, bits: int, seed: int, start: ILH | None = None, **own: Any) -> Numbers:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one sweep is not meant to converge
        init = {} if start is None else {"init": start}
        model = KSHcut(n_bits=bits, n_train=N, random_state=seed, **init, **own).fit(on.X, on.y)
    return {"precision": precision(model, on, [bits])[str(bits)], "loss": model.report_["loss"][-1]}


def coupled_variants() -> Numbers:
    """KSHcut and KSHcut-ILHt on CIFAR-10: one sweep per bit (seeds 0, 1), four passes (0); pixels as a whole (0)."""
    found: Numbers = {}
    images, digits = problem("images"), problem("digits")
    for name, own, seeds in (("one sweep", {"max_sweeps": 1}, (0, 1)), ("four passes", {"max_iter": 4}, (0,))):
        found[name] = []
        for seed in seeds:
            start = ilht(images, 256, seed)
            cells: Numbers = {"ILHt": precision(start, images, (80, 256))}
            for bits in (80, 256):
                cells |= {f"KSHcut, {bits}": _cut(images, bits, seed, **own)}
                cells |= {f"KSHcut-ILHt, {bits}": _cut(images, bits, seed, start[:bits], **own)}
            found[name].append(cells)
    start = ilht(digits, 256, scaling="whole")
    cells = {"ILHt": precision(start, digits, (80, 256))}
    for bits in (80, 256):
        cells |= {f"KSHcut, {bits}": _cut(digits, bits, 0, scaling="whole")}
        cells |= {f"KSHcut-ILHt, {bits}": _cut(digits, bits, 0, start[:bits], scaling="whole")}
    return {**found, "whole, digits": [cells]}


def from_scratch() -> Numbers:
    """Precision of KSHcut, trained anew at every b from 64 to 112, and of ILHt, whose bits are added; seed 0."""
    found: Numbers = {}
    for dataset in ("images", "digits"):
        on, bits = problem(dataset), range(64, 113, 8)
        coupled = {str(b): _cut(on, b, 0)["precision"] for b in bits}
        found[dataset] = {"KSHcut": coupled, "ILHt": precision(ilht(on, max(bits)), on, bits)}
    return found


def _flipped(packed: np.ndarray, bits: int, share: float, rng: np.random.Generator) -> np.ndarray:
    return codes.pack(codes.unpack(packed, bits) ^ (rng.random((len(packed), bits)) < share))


def perturbed_codes() -> Numbers:
    """KSHcut's codes of base and queries with a share of the bits flipped, no function fitted to them; seeds 0 to 4.

    Beside them the loss of the training points' codes at the optimum.
    """
    on, shares, found = problem("images"), (0.0, 0.02, 0.1, 0.2), {}
    for bits in (32, 64, 128):
        rows, losses = [], []
        for seed in range(5):
            model = KSHcut(n_bits=bits, n_train=N, random_state=seed).fit(on.X, on.y)
            base, asked = model.transform(on.X), model.transform(on.queries)
            rng = np.random.default_rng(seed)
            noisy = [(_flipped(base, bits, share, rng), _flipped(asked, bits, share, rng)) for share in shares]
            rows.append([float(on.measure(*pair, [bits]).precision[0, on.at_k]) for pair in noisy])
            losses.append(model.report_["loss"][-1])
        found[str(bits)] = {"shares": list(shares), "precision": rows, "loss": losses}
    return found


def flips_as_diversity() -> Numbers:
    """Likeness of KSHcut's functions where codes are flipped before they are fitted; CIFAR-10, 128 bits, seeds 0, 1."""
    on, found = problem("images"), {}
    for flip in (0.0, 0.1, 0.2):
        alike = []
        for seed in (0, 1):
            model = KSHcut(n_bits=128, n_train=N, random_state=seed, flip=flip).fit(on.X, on.y)
            weights = np.stack([function.weights for function in model.functions_])
            alike.append(orthogonality(weight_dot_products(weights * on.X.std(axis=0))))
        found[str(flip)] = alike
    return found


def weights_as_trained() -> Numbers:
    """Mean squared dot products of ILHt's weights in units of the features as given, 200 bits; seeds 0, 1.

    Pixels are scaled as a whole. Beside them the share of pairs beyond the central 99 % of random vectors.
    """
    found: Numbers = {}
    for dataset, scaling in (("images", "columns"), ("digits", "whole")):
        on, found[dataset] = problem(dataset), []
        for seed in (0, 1):
            weights = ilht(on, 200, seed, scaling=scaling).weights()
            dots = np.clip(weight_dot_products(weights), -1.0, 1.0)
            np.fill_diagonal(dots, 1.0)
            size = int(np.count_nonzero(np.abs(weights).max(axis=0) > 0))
            off = dots[np.triu_indices(len(dots), 1)]
            own = {"dimension": size, "beyond": float(np.mean(np.abs(off) > 2.576 / np.sqrt(size)))}
            own["measure"] = {str(b): orthogonality(dots[:b, :b]) for b in (32, 64, 128, 200)}
            found[dataset].append(own)
    return found


CORRECTIONS = (
    linear_on_both_sides,
    kernels_on_both_sides,
    kernels_more_seeds,
    kernel_neighbors,
    all_labels,
    same_pairs,
    query_time,
    one_set_resampled,
    all_features_whole,
    coupled_variants,
    from_scratch,
    perturbed_codes,
    flips_as_diversity,
    weights_as_trained,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions of this file; all of them by default")
    parser.add_argument("--data", type=Path, default=FOLDER, help="where the million digits are kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    globals()["FOLDER"] = given.data
    known = {one.__name__: one for one in CORRECTIONS}
    for name in given.names or known:
        begin = time.perf_counter()
        numbers = known[name]()
        about = {"seconds": round(time.perf_counter() - begin), "ilhash": __version__, "numpy": np.__version__}
        about["python"] = platform.python_version()
        stored = json.loads(given.results.read_text(encoding="utf-8")) if given.results.exists() else {}
        stored[name] = {**about, "numbers": numbers}
        ordered = {one: stored[one] for one in known if one in stored}
        given.results.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
        print(f"{name}, {about['seconds']} s: {json.dumps(numbers)}", flush=True)


if __name__ == "__main__":
    main()
