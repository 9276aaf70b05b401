"""``ilhash demo``: digits of scikit-learn, from vectors to an index in a folder, beside searches everybody has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from typer import Option

import ilhash
from ilhash import plots
from ilhash._extras import require
from ilhash.cli._app import kept
from ilhash.cli._screen import plain, progress, progress_of_work, tell

KS = (10, 50, 100)
NEIGHBOURS = 10
GREY, GREEN, RED = (0.35, 0.35, 0.35), (0.16, 0.62, 0.36), (0.82, 0.29, 0.36)


class _Search(NamedTuple):
    """One way of searching: its name, what it keeps per item, what it finds, its precision at KS."""

    name: str
    bytes_per_item: int
    hits: ilhash.search.Hits
    precision: list[float]


class _Digits:
    """The digits, parted into base and queries, and how a search among them is judged."""

    def __init__(self, seed: int) -> None:
        digits = ilhash.datasets.load("digits")
        self.X, self.y = digits.X, np.asarray(digits.y)
        self.protocol = ilhash.evaluation.Protocol(n_queries=400, k=KS, seed=seed)
        self.split = self.protocol.split(self.X)

    def measured(self, hashed: NDArray[np.uint8], n_bits: int) -> ilhash.evaluation.Evaluation:
        base, queries = self.split.base, self.split.queries
        return self.protocol.evaluate(hashed[base], self.y[base], hashed[queries], self.y[queries], n_bits=n_bits)

    def rescored(self, name: str, code_bytes: int, hits: ilhash.search.Hits) -> _Search:
        ordered = ilhash.search.rescore(hits, self.X[self.split.queries], self.X, k=max(KS))
        relevant = self.y[ordered.ids] == self.y[self.split.queries, None]
        precision = [float(relevant[:, :k].mean()) for k in KS]
        return _Search(name, code_bytes + self.X[0].nbytes, ordered, precision)

    def random_projections(self, n_bits: int, seed: int) -> _Search:
        directions = np.random.default_rng(seed).normal(size=(self.X.shape[1], n_bits))
        hashed = ilhash.codes.pack((self.X - self.X[self.split.base].mean(axis=0)) @ directions > 0)
        return self.codes_alone("random projections", hashed)

    def codes_alone(self, name: str, hashed: NDArray[np.uint8]) -> _Search:
        n_bits = 8 * hashed.shape[1]
        index = ilhash.HammingIndex(hashed[self.split.base], n_bits=n_bits, ids=self.split.base)
        hits = index.search(hashed[self.split.queries], k=NEIGHBOURS)
        precision = list(self.measured(hashed, n_bits).precision.values())
        return _Search(name, hashed.shape[1], hits, precision)

    def line(self, query: int, nearest: NDArray[Any]) -> NDArray[Any]:
        """Return the picture of a query and of what was found: green where the digit is the same, red elsewhere."""
        found = [_tile(self.X[row], GREEN if self.y[row] == self.y[query] else RED) for row in nearest]
        return np.concatenate([_tile(self.X[query], GREY), np.ones((40, 8, 3)), *found], axis=1)


def demo(
    output: Annotated[Path, Option("--output", "-o", help="Directory for what it makes.")] = Path("demo-output"),
    n_bytes: Annotated[int, Option("--bytes", help="Bytes of a code.")] = 8,
    minutes: Annotated[float, Option(help="Minutes to look for the best model.")] = 0.25,
    seed: Annotated[int, Option(help="random_state.")] = 0,
    serve: Annotated[
        bool,
        Option("--serve", help="Instead of all that: a service of the digits, with a page to look at and to teach."),
    ] = False,
    port: Annotated[int, Option(help="Port of the service; 0 for any that is free.")] = 8000,
) -> None:
    """Handwritten digits: tune, index in a folder, search, measure beside other searches, draw what is found.

    With --serve they are behind HTTP, and what people teach them stays in the folder.
    """
    if serve:
        _serve(output / f"service-{n_bytes}-bytes", n_bytes, seed, port)
        return
    with kept(output, "files of the demo", goes_on=False):
        _run(output, n_bytes, minutes, seed)


def _serve(folder: Path, n_bytes: int, seed: int, port: int) -> None:
    """Serve the digits, of a demo before this one if there was one."""
    from ilhash.cli.serve import NEEDED
    from ilhash.cli.serve import serve as serve_folder
    from ilhash.serve import is_service, make

    for module in NEEDED:
        require(module, "serve", "ilhash demo --serve")
    if not is_service(folder):
        digits = ilhash.datasets.load("digits")
        model = _trained(digits.X, np.asarray(digits.y), 8 * n_bytes, seed)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make(folder, model, digits.X, labels=digits.y, pictures=digits.X.reshape(-1, 8, 8))
    serve_folder(folder, port=port)


def _run(output: Path, n_bytes: int, minutes: float, seed: int) -> None:
    figure = plots.figure_class()(figsize=(23, 5), layout="constrained")
    digits = _Digits(seed)
    split = digits.split
    tell(f"{len(split.base):,} digits of 8 x 8 pixels, {len(split.queries)} other digits as queries")
    train = digits.X[split.train], digits.y[split.train]
    hashed = _tuned(*train, n_bytes, minutes, seed).transform(digits.X)
    n_bits = 8 * hashed.shape[1]  # padding is the same in all of them
    folder = output / f"index-{hashed.shape[1]}-bytes"
    with ilhash.HammingIndex.open(folder, n_bits=n_bits) as index:
        index.remove(index.ids)  # of a demo before this one
        index.add(hashed[split.base], ids=split.base)
        tell(f"{folder} holds {len(index):,} items on {index.n_distinct:,} distinct codes; it survives a crash")
        nearest = index.search(hashed[split.queries], k=max(KS))
        everything = index.search(hashed[split.queries], k=len(index))
    result = digits.measured(hashed, n_bits)
    tell(f"\n{result}\n")
    searches = [
        _Search("tuned", hashed.shape[1], nearest, list(result.precision.values())),
        digits.rescored("tuned, then vectors", hashed.shape[1], nearest),
        digits.codes_alone("ILH, linear", _trained(*train, 8 * n_bytes, seed).transform(digits.X)),
        digits.random_projections(8 * n_bytes, seed),
        digits.rescored("vectors alone", 0, everything),
    ]
    _compare(searches)
    picture = output / "digits.png"
    _draw(figure, digits, searches)
    figure.savefig(picture, dpi=110)
    tell(f"the first query of each digit with its nearest digits: {picture}")


def _tuned(X: NDArray[Any], y: NDArray[Any], n_bytes: int, minutes: float, seed: int) -> Any:
    with progress_of_work("core seconds") as move:
        found = ilhash.tune(X, y, n_bytes=n_bytes, minutes=minutes, random_state=seed, progress=move)
    tell(f"{found.reason} Precision among new digits: {found.reports['new'].value:.3f}; vectors {found.vectors:.3f}")
    return found.model


def _trained(X: NDArray[Any], y: NDArray[Any], n_bits: int, seed: int) -> ilhash.ILH:
    # A class has some 70 points in a bit's half of the data: the default of 100 neighbours is more than there are.
    model = ilhash.ILH(n_bits=n_bits, n_similar=30, n_dissimilar=30, random_state=seed)
    with progress("training", "bits") as move:
        model.fit(X, y, progress=move)
    reports = model.bits_
    seconds = sum(sum(report.seconds.values()) for report in reports)
    tell(
        f"trained {len(reports)} independent bits on {model.n_train_} points each in {seconds:.2f} s: the z-step took "
        f"{np.mean([r.sweeps for r in reports]):.1f} sweeps, and the hash functions reproduce its bits on "
        f"{np.mean([r.accuracy for r in reports]):.1%} of their points"
    )
    return model


def _compare(searches: list[_Search]) -> None:
    table = Table("search", "bytes", *(f"precision@{k}" for k in KS))
    for search in searches:
        table.add_row(search.name, str(search.bytes_per_item), *(f"{value:.3f}" for value in search.precision))
    plain.print(table)
    tell(f"then vectors: the {max(KS)} nearest in Hamming space, put in the order of their pixels")


def _draw(figure: Any, digits: _Digits, searches: list[_Search]) -> None:
    # The first query of each digit, whatever comes of it: a picture of chosen queries would prove nothing.
    queries = digits.split.queries
    _, shown = np.unique(digits.y[queries], return_index=True)
    for axes, search in zip(figure.subplots(1, len(searches)), searches, strict=True):
        axes.imshow(
            np.concatenate([digits.line(queries[q], search.hits.ids[q, :NEIGHBOURS]) for q in shown]),
            interpolation="nearest",
        )
        axes.set(xticks=[], yticks=[], frame_on=False)
        title = f"{search.name}\n{search.bytes_per_item} bytes, precision@{KS[0]} {search.precision[0]:.3f}"
        axes.set_title(title, fontsize=11)


def _tile(pixels: NDArray[Any], colour: tuple[float, float, float]) -> NDArray[Any]:
    tile = np.ones((40, 40, 3))
    tile[1:-1, 1:-1] = colour
    tile[4:-4, 4:-4] = np.kron(1.0 - pixels.reshape(8, 8, 1) / 16.0, np.ones((4, 4, 1)))
    return tile
