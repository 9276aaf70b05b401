"""Types of the C++ core (src/core/bindings)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

def simd() -> str: ...
def permuted(n: int, seed: int, start: int, count: int) -> NDArray[np.int64]: ...
def neighbourhood_order(
    row_begin: NDArray[np.int64], columns: NDArray[np.int32], seed: int, count: int
) -> NDArray[np.int64]: ...

class SignedGraph:
    @staticmethod
    def from_classes(class_sizes: Sequence[int], similar: int, dissimilar: int, seed: int) -> SignedGraph: ...
    @staticmethod
    def from_label_sets(
        row_begin: NDArray[np.uint32],
        labels: NDArray[np.uint32],
        n_labels: int,
        similar: int,
        dissimilar: int,
        seed: int,
    ) -> SignedGraph: ...
    @staticmethod
    def from_neighbours(neighbours: NDArray[np.uint32], dissimilar: int, seed: int) -> SignedGraph: ...
    @staticmethod
    def from_couplings(
        row_begin: NDArray[np.uint32], columns: NDArray[np.uint32], couplings: NDArray[np.float64]
    ) -> SignedGraph: ...
    @property
    def n_points(self) -> int: ...
    @property
    def n_attract(self) -> int: ...
    @property
    def n_repel(self) -> int: ...
    @property
    def weighted(self) -> bool: ...
    def triplets(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]: ...
    def connected(self) -> NDArray[np.uint8]: ...
    def degrees(self) -> NDArray[np.uint32]: ...
    def energy(self, z: NDArray[np.int8]) -> float: ...
    def mean_pull(self) -> float: ...
    def grown_blocks(self) -> NDArray[np.uint32]: ...

def minimise(
    graph: SignedGraph,
    start: NDArray[np.int8],
    seed: int,
    shuffle_blocks: bool,
    max_sweeps: int,
    field: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int8], NDArray[np.float64], int, bool]: ...

class PairLoss:
    @staticmethod
    def of_pairs(row_begin: NDArray[np.uint32], columns: NDArray[np.uint32], signs: NDArray[np.int8]) -> PairLoss: ...
    @property
    def n_bits(self) -> int: ...
    def add(self, z: NDArray[np.int8]) -> None: ...
    def remove(self, z: NDArray[np.int8]) -> None: ...
    def value(self) -> float: ...
    def lower(
        self, start: NDArray[np.int8], n_bits: int, seed: int, max_sweeps: int
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], int, bool]: ...

def gather_f32(
    x: NDArray[np.float32],
    rows: NDArray[np.int64],
    columns: NDArray[np.int32] | None,
    origin: NDArray[np.float32],
    out: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def gather_f64(
    x: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int32] | None,
    origin: NDArray[np.float32],
    out: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def gather_u8(
    x: NDArray[np.uint8],
    rows: NDArray[np.int64],
    columns: NDArray[np.int32] | None,
    origin: NDArray[np.float32],
    out: NDArray[np.float32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def rescale(x: NDArray[np.float32], shift: NDArray[np.float32], factor: NDArray[np.float32]) -> None: ...
def hinge(
    f: NDArray[np.float32],
    y: NDArray[np.float32],
    slack: NDArray[np.float32],
    pull: NDArray[np.float32],
    active: NDArray[Any],
) -> float: ...
def hinge_slope(
    slack: NDArray[np.float32], y: NDArray[np.float32], direction: NDArray[np.float32], t: float
) -> tuple[float, float]: ...
def gram_times(
    x: NDArray[np.float32],
    v: NDArray[np.float32],
    weight: NDArray[np.float32],
    product: NDArray[np.float32],
    image: NDArray[np.float32],
) -> None: ...
def solve_squared_hinge(
    rows: NDArray[np.float32],
    shift: NDArray[np.float32],
    factor: NDArray[np.float32],
    y: NDArray[np.float32],
    C: float,
    inverse: NDArray[np.float32],
    tolerance: float,
) -> tuple[NDArray[np.float32], NDArray[np.float32], int, bool]: ...
def project_subsets(
    x: NDArray[np.float32],
    weights: NDArray[np.float32],
    columns: NDArray[np.int32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None: ...
def group_codes(
    codes: NDArray[np.uint8],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]: ...
def to_tiles(codes: NDArray[np.uint8], rows: NDArray[np.uint32] | None, tiles: NDArray[np.uint8]) -> None: ...
def from_tiles(tiles: NDArray[np.uint8], codes: NDArray[np.uint32], out: NDArray[np.uint8]) -> None: ...
def check_segment(
    tiles: NDArray[np.uint8],
    n_codes: int,
    n_bits: int,
    offsets: NDArray[np.uint32] | None,
    rows: NDArray[np.uint32] | None,
    pivots: NDArray[np.uint8] | None,
    ranges: NDArray[np.uint16] | None,
) -> None: ...
def nearest(
    tiles: NDArray[np.uint8],
    n_codes: int,
    n_bits: int,
    offsets: NDArray[np.uint32] | None,
    rows: NDArray[np.uint32] | None,
    ordered: bool,
    queries: NDArray[np.uint8],
    k: int,
    max_distance: int,
    n_threads: int,
    pivots: NDArray[np.uint8] | None = None,
    ranges: NDArray[np.uint16] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]: ...
def order_by_pivots(
    codes: NDArray[np.uint8], rows: NDArray[np.uint32], n_bits: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16]]: ...
def nearest_weighted(
    tiles: NDArray[np.uint8],
    n_codes: int,
    n_bits: int,
    offsets: NDArray[np.uint32] | None,
    rows: NDArray[np.uint32] | None,
    ordered: bool,
    queries: NDArray[np.uint8],
    weights: NDArray[np.float32],
    k: int,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]: ...
def distance_histograms(
    tiles: NDArray[np.uint8],
    n_codes: int,
    n_bits: int,
    queries: NDArray[np.uint8],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    n_threads: int,
    counts: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> None: ...

class CutCounts:
    def add(self, base_bits: NDArray[np.uint8], query_bits: NDArray[np.uint8], n_threads: int) -> None: ...
    def now(self, out: NDArray[np.int32]) -> None: ...
    def with_each(
        self,
        pool: NDArray[np.uint64],
        queries: NDArray[np.uint64],
        n_bits: int,
        n_threads: int,
        out: NDArray[np.int32],
    ) -> None: ...

def cut_counts(relevant: NDArray[np.uint8], k: int) -> CutCounts: ...
def digit_sources(n: int, seed: int, start: int, count: int) -> NDArray[np.int64]: ...
def digit_images(
    sources: NDArray[np.uint8],
    limits: tuple[int, int, int, int, int, int, int],
    seed: int,
    start: int,
    out: NDArray[np.uint8],
) -> None: ...
def digit_fields(
    limits: tuple[int, int, int, int, int, int, int], seed: int, start: int, out: NDArray[np.int32]
) -> None: ...
def check_trees(
    feature: NDArray[np.int32],
    threshold: NDArray[np.float64],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    value: NDArray[np.float64],
    roots: NDArray[np.int32],
    n_features: int,
    max_depth: int,
) -> None: ...

class TreeMargins:
    n_tables: int
    def margins(self, x: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...

def tree_margins(tables: list[tuple[Any, ...]], n_features: int) -> TreeMargins: ...
def place_in_bins(
    x: NDArray[np.float32], edge_begin: NDArray[np.uint32], edges: NDArray[np.float64], out: NDArray[np.uint8]
) -> None: ...
def boosted_trees(
    bins: NDArray[np.uint8],
    edge_begin: NDArray[np.uint32],
    edges: NDArray[np.float64],
    z: NDArray[np.int8],
    n_trees: int,
    depth: int,
    n_tried: int,
    rate: float,
    penalty: float,
    seed: int,
) -> tuple[
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float64],
    NDArray[np.int32],
    float,
    NDArray[np.float64],
]: ...

# Ids that are texts.

def check_texts(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None: ...
def find_texts(
    text: NDArray[np.uint8], ends: NDArray[np.int64], wanted: NDArray[np.uint8], wanted_ends: NDArray[np.int64]
) -> NDArray[np.int64]: ...
