"""Vectors: every type and layout is read as float32 relative to the origin, and every instruction set agrees."""

import hashlib
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import _core, vectors
from ilhash.vectors import as_matrix, fingerprint, gather, origin_of, refuse_non_finite, relative

DTYPES = ["f4", "f8", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "?", ">f4", ">f8", ">i4", ">u2", "g"]


def matrix(dtype, n=60, d=7, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random((n, d)) < 0.5
    if kind == "f":
        return (rng.standard_normal((n, d)) * 3 + 5).astype(dtype)
    return rng.integers(0, 120, (n, d)).astype(dtype)


def c_order(X, tmp_path):
    return np.ascontiguousarray(X)


def fortran(X, tmp_path):
    return np.asfortranarray(X)


def every_other_row(X, tmp_path):
    wide = np.zeros((2 * len(X), X.shape[1]), X.dtype)
    wide[::2] = X
    return wide[::2]


def every_other_column(X, tmp_path):
    wide = np.zeros((len(X), 2 * X.shape[1]), X.dtype)
    wide[:, ::2] = X
    return wide[:, ::2]


def part_of_wider_rows(X, tmp_path):
    wide = np.zeros((len(X), X.shape[1] + 5), X.dtype)
    wide[:, 2:-3] = X
    return wide[:, 2:-3]


def reversed_rows(X, tmp_path):
    return np.ascontiguousarray(X[::-1])[::-1]


def memory_map(X, tmp_path):
    np.save(tmp_path / "x.npy", np.ascontiguousarray(X))
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def read_only(X, tmp_path):
    X = X.copy()
    X.flags.writeable = False
    return X


def misaligned(X, tmp_path):
    raw = bytearray(X.nbytes + 1)
    view = np.frombuffer(raw, dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    view[:] = X
    return view


LAYOUTS = [
    c_order,
    fortran,
    every_other_row,
    every_other_column,
    part_of_wider_rows,
    reversed_rows,
    memory_map,
    read_only,
    misaligned,
]


def expected_values(X, rows, origin, features=None):
    part = np.asarray(X[rows]).astype(np.float64)
    if features is not None:
        part, origin = part[:, features], origin[features]
    return (part - origin.astype(np.float64)).astype(np.float32)


# -------------------------------------------------------------------------------- gathering


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_reads_every_type_and_layout(dtype, layout, tmp_path):
    X = layout(matrix(dtype), tmp_path)
    before = np.asarray(X).tobytes()
    rng = np.random.default_rng(1)
    rows = rng.integers(0, len(X), 45)
    origin = rng.standard_normal(X.shape[1]).astype(np.float32)
    for features in (None, np.array([0, 2, 3, 6], np.int32), np.array([5], np.int32)):
        got = gather(X, rows, origin, features)
        wanted = expected_values(X, rows, origin, features)
        assert got.values.dtype == np.float32
        assert np.array_equal(got.values, wanted)
        assert (got.with_ones[:, -1] == 1.0).all()
        assert got.with_ones.shape == (45, wanted.shape[1] + 1)
        exact = wanted.astype(np.float64)
        assert np.allclose(got.mean, exact.mean(axis=0), rtol=1e-5, atol=1e-5)
        assert np.allclose(got.variance, exact.var(axis=0), rtol=1e-4, atol=1e-4)
    assert np.asarray(X).tobytes() == before


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 130), st.integers(1, 70), st.sampled_from(["f4", "f8", "u1"]), st.integers(0, 2**32))
def test_gather_is_right_for_any_shape(n, d, dtype, seed):
    X = matrix(dtype, n, d, seed)
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n, int(rng.integers(1, 100)))
    features = np.sort(rng.permutation(d)[: rng.integers(1, d + 1)]).astype(np.int32)
    origin = origin_of(X, rows)
    for own in (None, features):
        got = gather(X, rows, origin, own)
        wanted = expected_values(X, rows, origin, own)
        assert np.array_equal(got.values, wanted)
        assert np.allclose(got.mean, wanted.mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-5)
        assert np.allclose(got.variance, wanted.astype(np.float64).var(axis=0), rtol=1e-4, atol=1e-4)


def test_mean_and_variance_keep_their_precision_over_many_rows():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((50_000, 3)) * [1e-4, 1.0, 1e4]).astype(np.float32)
    got = gather(X, np.arange(len(X)), np.zeros(3, np.float32))
    exact = X.astype(np.float64)
    assert np.allclose(got.variance, exact.var(axis=0), rtol=1e-5)
    assert np.allclose(got.mean, exact.mean(axis=0), atol=1e-6 * exact.std(axis=0))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, -1e9])
def test_a_large_offset_costs_no_precision_in_double_input(offset):
    rng = np.random.default_rng(0)
    small = rng.standard_normal((500, 4))
    X, rows = small + offset, np.arange(500)
    origin = origin_of(X, rows)
    got = gather(X, rows, origin)
    exact = (X - origin.astype(np.float64)).astype(np.float32).astype(np.float64)
    assert np.array_equal(got.values, exact)
    if abs(offset) <= 1e6:  # from there on the origin itself is rounded by more than the data vary
        assert np.allclose(got.variance, small.var(axis=0), rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-15, 1e-6, 1.0, 1e6, 1e15])
def test_mean_and_variance_are_right_at_every_usual_scale(scale):
    X = matrix("f8") * scale
    got = gather(X, np.arange(60), np.zeros(7, np.float32))
    assert np.allclose(got.mean, X.mean(axis=0), rtol=1e-5)
    assert np.allclose(got.variance, X.var(axis=0), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-24, 1e20, 1e30])
def test_mean_and_variance_are_right_or_refused_where_squares_leave_single_precision(scale):
    X = matrix("f8") * scale
    try:
        got = gather(X, np.arange(60), np.zeros(7, np.float32))
    except ValueError:
        return
    assert np.isfinite(got.variance).all()
    assert np.allclose(got.variance / scale**2, (X / scale).var(axis=0), rtol=1e-3)


def test_a_constant_column_has_no_variance_below_zero():
    X = np.full((100, 2), 1.1, np.float32)
    got = gather(X, np.arange(100), np.zeros(2, np.float32))
    assert (got.variance >= 0).all()
    assert (got.variance < 1e-5).all()
    assert gather(X, np.arange(100), X[0]).variance.tolist() == [0.0, 0.0]


def test_one_row_and_one_column_are_read():
    X = np.array([[3.0]], np.float32)
    got = gather(X, np.array([0, 0]), np.array([1.0], np.float32))
    assert got.with_ones.tolist() == [[2.0, 1.0], [2.0, 1.0]]
    assert got.variance.tolist() == [0.0]


def test_only_the_drawn_rows_are_checked():
    X = matrix("f4")
    X[7, 3] = np.nan
    gather(X, np.array([0, 1, 2]), np.zeros(7, np.float32))
    with pytest.raises(ValueError, match="1 of 3 rows that hold NaN"):
        gather(X, np.array([0, 7, 2]), np.zeros(7, np.float32))


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", ">f8"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_counted(dtype, value):
    X = matrix(dtype)
    X[[4, 9, 9], [0, 1, 5]] = value
    what = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"the drawn rows of X must be finite .* got 2 of 60 rows that hold {what}"):
        gather(X, np.arange(60), np.zeros(7, np.float32))
    with pytest.raises(ValueError, match="the drawn rows of X"):
        origin_of(X, np.arange(60))
    with pytest.raises(ValueError, match=r"X must be finite .* got 2 of 60 rows"):
        relative(X, np.zeros(7, np.float32))


def test_values_beyond_single_precision_are_refused_and_counted():
    X = matrix("f8")
    X[3, 0] = 1e39
    with pytest.raises(ValueError, match="1 of 60 rows that hold infinity or values too large for float32"):
        gather(X, np.arange(60), np.zeros(7, np.float32))
    with pytest.raises(ValueError, match="1 of 60 rows that hold infinity or values too large for float32"):
        relative(X, np.zeros(7, np.float32))


def test_scratch_memory_is_reused_and_own_memory_is_not():
    X = matrix("f4")
    origin = np.zeros(7, np.float32)
    first = gather(X, np.arange(30), origin, reuse=True)
    kept = first.copy()
    second = gather(X, np.arange(30, 60), origin, reuse=True)
    assert np.shares_memory(first.with_ones, second.with_ones)
    assert np.array_equal(kept.values, X[:30])
    own = gather(X, np.arange(30), origin)
    gather(X, np.arange(30, 60), origin)
    assert np.array_equal(own.values, X[:30])


def test_scratch_memory_belongs_to_one_thread():
    X, origin = matrix("f4"), np.zeros(7, np.float32)
    here, there = gather(X, np.arange(30), origin, reuse=True), []
    worker = threading.Thread(target=lambda: there.append(gather(X, np.arange(30, 60), origin, reuse=True)))
    worker.start()
    worker.join()
    assert not np.shares_memory(here.with_ones, there[0].with_ones)
    assert np.array_equal(here.values, X[:30])


def test_rescaled_rows_are_shifted_and_multiplied_in_place():
    X = matrix("f4")
    rows = gather(X, np.arange(60), np.zeros(7, np.float32))
    before = rows.values.astype(np.float64)
    shift, factor = rows.mean, 1.0 / np.sqrt(rows.variance)
    scaled = rows.rescaled(shift, factor)
    assert np.shares_memory(scaled.with_ones, rows.with_ones)
    assert np.allclose(scaled.values, (before - shift) * factor, atol=1e-5)
    assert (scaled.with_ones[:, -1] == 1.0).all()
    assert np.allclose(scaled.mean, scaled.values.mean(axis=0), atol=1e-5)
    assert np.allclose(scaled.variance, scaled.values.var(axis=0), rtol=1e-4)


def test_taken_rows_have_their_own_memory_mean_and_variance():
    rows = gather(matrix("f4"), np.arange(60), np.zeros(7, np.float32))
    part = rows.take(np.array([3, 1, 8]))
    assert np.array_equal(part.with_ones, rows.with_ones[[3, 1, 8]])
    assert not np.shares_memory(part.with_ones, rows.with_ones)
    assert np.allclose(part.mean, part.values.mean(axis=0))
    assert np.allclose(part.variance, part.values.var(axis=0))


@pytest.mark.parametrize("rows", [[-1], [60], [0, 1, 1000]])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_rows_out_of_range_are_refused_by_the_core(rows, dtype):
    kernel = {"f4": _core.gather_f32, "f8": _core.gather_f64, "u1": _core.gather_u8}[dtype]
    out = np.zeros((len(rows), 7), np.float32)
    with pytest.raises(ValueError, match="drawn rows must be rows of the matrix"):
        kernel(matrix(dtype), np.array(rows), None, np.zeros(7, np.float32), out)


@pytest.mark.parametrize("features", [[-1], [7], [0, 1, 99]])
def test_features_out_of_range_are_refused_by_the_core(features):
    out = np.zeros((1, len(features)), np.float32)
    with pytest.raises(ValueError, match="features must be columns of the matrix"):
        _core.gather_f32(
            matrix("f4"), np.array([0]), np.array(features, np.int32), np.zeros(len(features), np.float32), out
        )


# -------------------------------------------------------------------------------- reading


def test_an_array_is_not_copied(tmp_path):
    for dtype in ("f4", "f8", "u1", ">f4"):
        X = matrix(dtype)
        assert as_matrix(X) is X
    mapped = memory_map(matrix("f4"), tmp_path)
    assert isinstance(as_matrix(mapped), np.memmap)


def test_lists_and_objects_of_numbers_are_read():
    assert as_matrix([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert as_matrix(np.array([[1, 2.5], [3, 4]], dtype=object)).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, "2-D array .* got 1-D with shape .*Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "2-D array .* got 3-D"),
        (np.float64(1), ValueError, "got 0-D"),
        (np.zeros((0, 3)), ValueError, "0 sample"),
        (np.zeros((3, 0)), ValueError, "0 feature"),
        (np.zeros((2, 2), complex), ValueError, "Complex data not supported"),
        (np.array([["a", "b"]]), ValueError, "must hold numbers, got dtype"),
        (np.array([[1, "b"]], dtype=object), ValueError, "object array that does not convert"),
        (np.array([[1, {}]], dtype=object), TypeError, "object array that does not convert"),
        (np.zeros((2, 2), "M8[s]"), ValueError, "must hold numbers"),
        (scipy.sparse.csr_array((3, 3)), TypeError, "dense array here, got a sparse matrix of shape .*TruncatedSVD"),
        (scipy.sparse.coo_matrix((3, 3)), TypeError, "dense array"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        as_matrix(X)


def test_the_array_is_named_in_errors():
    with pytest.raises(ValueError, match="queries must be a 2-D array"):
        as_matrix(np.zeros(3), "queries")


def test_finite_rows_are_not_refused():
    refuse_non_finite(np.array([[1.0, np.finfo(np.float32).max]]))


# -------------------------------------------------------------------------------- streaming


@pytest.mark.parametrize(
    "layout", [c_order, fortran, every_other_column, memory_map], ids=lambda layout: layout.__name__
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_block_of_every_type_is_what_gather_reads(dtype, layout, tmp_path):
    X = layout(matrix(dtype), tmp_path)
    origin = np.random.default_rng(0).standard_normal(7).astype(np.float32)
    got = relative(X, origin)
    assert got.dtype == np.float32
    assert got.flags.c_contiguous
    assert np.array_equal(got, expected_values(X, np.arange(60), origin))


@pytest.mark.parametrize("dtype", ["f8", ">f8", "g", "i4", ">i4", "u4", "i8"])
def test_a_large_offset_costs_no_precision_in_streams_either(dtype):
    # Timestamps: what the hash functions were trained on (gather) is what they must be given to encode (relative).
    X = (1_700_000_000 + np.arange(60 * 7).reshape(60, 7) * 10).astype(dtype)
    rows = np.arange(60)
    origin = origin_of(X, rows)
    got = relative(X, origin)
    assert np.array_equal(got, expected_values(X, rows, origin))
    assert np.array_equal(got, gather(X, rows, origin).values)


def test_large_finite_values_whose_sum_overflows_are_taken():
    X = np.full((4, 3), 3e38, np.float32)
    assert np.array_equal(relative(X, np.zeros(3, np.float32)), X)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_origin_lies_within_the_sample_and_is_single_precision(dtype):
    X = matrix(dtype)
    rows = np.array([5, 9, 30, 2])
    origin = origin_of(X, rows)
    sample = X[rows].astype(np.float64)
    assert origin.dtype == np.float32
    assert (origin >= sample.min(axis=0).astype(np.float32)).all()
    assert (origin <= sample.max(axis=0).astype(np.float32)).all()
    assert np.array_equal(origin, origin_of(X, rows[::-1]))


# -------------------------------------------------------------------------------- fingerprints


def test_fingerprints_tell_shape_type_and_values_apart():
    X = matrix("f4", 200)
    same = fingerprint(X)
    assert same == fingerprint(X.copy())
    assert same == fingerprint(np.asfortranarray(X))
    assert same != fingerprint(X.astype(np.float64))
    assert same != fingerprint(X[:-1])
    assert same != fingerprint(X[:, :-1])
    assert same != fingerprint(X[::-1])
    for row in (0, 199):
        other = X.copy()
        other[row, 3] += 1.0
        assert same != fingerprint(other)
    one = matrix("f4", 1)
    assert fingerprint(one) == fingerprint(one.copy())


def test_a_fingerprint_of_a_small_array_sees_every_row():
    X = matrix("u1", 64)
    for row in range(64):
        other = X.copy()
        other[row, 0] ^= 1
        assert fingerprint(X) != fingerprint(other)


def test_a_memory_map_has_the_fingerprint_of_its_array(tmp_path):
    X = matrix("f4", 500)
    assert fingerprint(memory_map(X, tmp_path)) == fingerprint(X)


# -------------------------------------------------------------------------------- kernels


def test_hinge_equals_numpy():
    for n in (0, 1, 15, 16, 17, 100):
        rng = np.random.default_rng(n)
        f = (2 * rng.standard_normal(n)).astype(np.float32)
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0).astype(np.float32)
        slack, pull, active = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.uint8)
        total = _core.hinge(f, y, slack, pull, active)
        wanted = np.float32(1) - y * f
        assert np.array_equal(slack, wanted)
        assert np.array_equal(pull, -y * np.maximum(wanted, 0))
        assert np.array_equal(active, wanted > 0)
        assert total == pytest.approx((np.maximum(wanted, 0).astype(np.float64) ** 2).sum(), rel=1e-12)


def test_hinge_slope_is_the_derivative():
    for n in (0, 1, 16, 33, 200):
        rng = np.random.default_rng(n)
        slack = rng.standard_normal(n).astype(np.float32)
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0).astype(np.float32)
        along = rng.standard_normal(n).astype(np.float32)
        for t in (0.0, 0.5, 3.0):
            slope, curvature = _core.hinge_slope(slack, y, along, t)
            v = y * along
            left = np.maximum(slack - np.float32(t) * v, 0).astype(np.float64)
            assert slope == pytest.approx(-(left * v).sum(), rel=1e-6, abs=1e-9)
            assert curvature == pytest.approx((v.astype(np.float64)[left > 0] ** 2).sum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "D", "bits", "d"), [(1, 1, 1, 1), (31, 9, 3, 4), (32, 9, 3, 4), (33, 20, 17, 20), (100, 50, 5, 7)]
)
def test_projections_on_subsets_equal_matrix_products(n, D, bits, d):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, D + 3)).astype(np.float32)[:, 1 : D + 1]
    weights, bias = rng.standard_normal((bits, d)).astype(np.float32), rng.standard_normal(bits).astype(np.float32)
    columns = np.stack([rng.permutation(D)[:d] for _ in range(bits)]).astype(np.int32)
    wide = np.full((n, bits + 2), 99.0, np.float32)
    _core.project_subsets(x, weights, columns, bias, wide[:, 1:-1])
    wanted = np.stack(
        [x[:, c].astype(np.float64) @ w + b for w, c, b in zip(weights, columns, bias, strict=True)], axis=1
    )
    assert np.allclose(wide[:, 1:-1], wanted, atol=1e-4)
    assert (wide[:, [0, -1]] == 99.0).all()


def test_rescaling_touches_its_columns_only():
    wide = np.arange(40, dtype=np.float32).reshape(5, 8)
    before = wide.copy()
    shift, factor = np.array([1.0, 2.0, 3.0], np.float32), np.array([0.5, 2.0, 0.1], np.float32)
    _core.rescale(wide[:, 2:5], shift, factor)
    before[:, 2:5] = (before[:, 2:5] - shift) * factor
    assert np.array_equal(wide, before)


KERNELS = """
import hashlib
import numpy as np
from ilhash import _core

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for n, d in ((1, 1), (5, 3), (33, 17), (64, 16), (150, 61), (1000, 130)):
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, d)
    rows = rng.integers(0, n, 2 * n + 1)
    origin = rng.standard_normal(d).astype(np.float32)
    some = np.sort(rng.permutation(d)[: max(1, d // 2)]).astype(np.int32)
    bytes8 = rng.integers(0, 256, (n, d)).astype(np.uint8)
    for kernel, x in (
        (_core.gather_f32, X.astype(np.float32)), (_core.gather_f64, X), (_core.gather_u8, bytes8),
    ):
        for columns in (None, some):
            own = origin if columns is None else origin[columns]
            out = np.empty((len(rows), len(own)), np.float32)
            for part in (*kernel(x, rows, columns, own, out), out):
                digest.update(part.tobytes())
    x = X.astype(np.float32)
    _core.rescale(x, origin, (origin * 3).astype(np.float32))
    digest.update(x.tobytes())
    f, along = (rng.standard_normal((2, 7 * n)) * 2).astype(np.float32)
    y = np.where(rng.random(7 * n) < 0.5, 1.0, -1.0).astype(np.float32)
    slack, pull, active = np.empty_like(f), np.empty_like(f), np.empty(7 * n, np.uint8)
    digest.update(np.float64(_core.hinge(f, y, slack, pull, active)).tobytes())
    for part in (slack, pull, active, *(np.float64(v) for v in _core.hinge_slope(slack, y, along, 0.37))):
        digest.update(part.tobytes())
    columns = np.stack([rng.permutation(d)[: len(some)] for _ in range(9)]).astype(np.int32)
    weights = rng.standard_normal(columns.shape).astype(np.float32)
    out = np.empty((n, 9), np.float32)
    _core.project_subsets(x, weights, columns, rng.standard_normal(9).astype(np.float32), out)
    digest.update(out.tobytes())
print(_core.simd(), digest.hexdigest())
"""


def run_kernels(level):
    environment = {name: value for name, value in os.environ.items() if name != "ILHASH_SIMD"}
    if level is not None:
        environment["ILHASH_SIMD"] = level
    return subprocess.run([sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True, check=False)


def test_every_instruction_set_gives_the_same_bytes():
    default = run_kernels(None)
    assert default.returncode == 0, default.stderr
    best, wanted = default.stdout.split()
    ran = []
    for level in ("portable", "avx2", "avx512"):
        done = run_kernels(level)
        if done.returncode:
            assert "ILHASH_SIMD must name an instruction set of this machine" in done.stderr
            continue
        name, digest = done.stdout.split()
        assert name == level
        assert digest == wanted, f"{level} differs from {best}"
        ran.append(level)
    assert "portable" in ran
    assert best == ran[-1]
    assert len(wanted) == hashlib.sha256().digest_size * 2


def test_an_unknown_instruction_set_is_refused():
    done = run_kernels("mmx")
    assert done.returncode != 0
    assert "ILHASH_SIMD must name an instruction set of this machine" in done.stderr
    assert "got mmx" in done.stderr


def test_a_map_is_kept_until_its_file_changes(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.zeros((4, 3)))
    first = vectors.kept_map(np.load(path, mmap_mode="r"))
    assert vectors.kept_map(np.load(path, mmap_mode="r")) is first
    np.save(tmp_path / "other.npy", np.ones((4, 3)))
    os.replace(tmp_path / "other.npy", path)
    assert vectors.kept_map(np.load(path, mmap_mode="r"))[0, 0] == 1.0
    array = np.zeros((2, 2))
    assert vectors.kept_map(array) is array
