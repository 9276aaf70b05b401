"""Infinite digits: the kernel against plain Python, the same bytes everywhere, and deformations that are real."""

import hashlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles

from ilhash import _core
from ilhash.datasets import InfiniteDigits, available, load
from ilhash.datasets import _infinite as infinite
from ilhash.storage import DamagedFileError, StorageError, sha256_of_file
from ilhash.vectors.io import read_matrix, read_vector

ROOT = Path(__file__).parents[2]
MASK64 = (1 << 64) - 1
DEFAULTS = {name: inspect.signature(InfiniteDigits).parameters[name].default for name in infinite.LIMITS}
needs_mnist = pytest.mark.skipif(
    "mnist" not in {info.name for info in available() if info.present}, reason="ILHASH_DATA does not hold mnist"
)


@pytest.fixture(scope="module")
def endless():
    return InfiniteDigits("digits", seed=3)


# The twin -------------------------------------------------------------------------------------------------


class Draws:
    """SplitMix64 by its definition, in Python's whole numbers."""

    def __init__(self, seed):
        self.counter = oracles.mix64((seed & MASK64) ^ 0x5851F42D4C957F2D)

    def below(self, n):
        return ((self.next() >> 32) * n) >> 32

    def below_twice(self, n):
        bits = self.next()
        return ((bits >> 32) * n) >> 32, ((bits & 0xFFFFFFFF) * n) >> 32

    def next(self):
        self.counter = (self.counter + 0x9E3779B97F4A7C15) & MASK64
        return oracles.mix64(self.counter)


def nearest(numerator, denominator):
    """Divide and round to the nearest whole number, halves upwards."""
    return (2 * numerator + denominator) // (2 * denominator)


def spline_weights(position, spacing):
    """First knot and the four weights of 4096 at a position."""
    knot, f = position // spacing, position % spacing * 4096 // spacing
    sixth = 6 * 4096**2
    first = nearest((4096 - f) ** 3, sixth)
    second = nearest(3 * f**3 - 6 * f**2 * 4096 + 4 * 4096**3, sixth)
    fourth = nearest(f**3, sixth)
    return knot, [first, second, 4096 - first - second - fourth, fourth]


def twin_field(limits, seed, i):
    """Displacements (2, side, side) of image i, pixel by pixel."""
    side, spacing, amplitude = limits["side"], limits["spacing"], limits["amplitude"]
    draws = Draws(oracles.mix64(seed ^ 0x8CB92BA72F3D8DD7) + i)
    t, growth = (draws.below(2 * limits[name] + 1) - limits[name] for name in ("tan_half_angle", "scale"))
    shift = [draws.below(2 * limits["shift"] + 1) - limits["shift"] for _ in range(2)]
    offsets = [draws.below(spacing) for _ in range(2)]
    across, along = ([spline_weights(x * 1024 + 512 + o, spacing) for x in range(side)] for o in offsets)
    n_knots = (side * 1024 - 512 + spacing - 1) // spacing + 4
    knots = [[draws.below_twice(2 * amplitude + 1) for _ in range(n_knots)] for _ in range(n_knots)]

    # Rotation from t = tan(angle / 2); the sine is rounded towards zero, as C++ divides.
    cosine = (2**32 - t * t) * 2**16 // (2**32 + t * t)
    sine = (abs(t) * 2**33 // (2**32 + t * t)) * (1 if t > 0 else -1)
    size = 2**16 + growth
    a, b = nearest(cosine * size, 2**16) - 2**16, nearest(sine * size, 2**16)
    linear = [[a, -b], [b, a]]

    field = np.empty((2, side, side), np.int64)
    for y in range(side):
        row, row_weights = along[y]
        for x in range(side):
            column, column_weights = across[x]
            place = [(2 * c - (side - 1)) * 512 for c in (x, y)]
            for d in range(2):
                strip = [
                    nearest(
                        sum(w * (knots[row + r][column + c][d] - amplitude) for r, w in enumerate(row_weights)), 4096
                    )
                    for c in range(4)
                ]
                elastic = nearest(sum(w * s for w, s in zip(column_weights, strip, strict=True)), 4096)
                turned = nearest(linear[d][0] * place[0] + linear[d][1] * place[1], 2**16)
                from_border = min((x, y)[d], side - 1 - (x, y)[d]) * 1024 + 512
                fading = min(1024, from_border * 1024 // limits["margin"])
                field[d, y, x] = nearest((elastic + turned + shift[d]) * fading, 1024)
    return field


def twin_image(source, field):
    """Bilinear interpolation of the source at displaced places that are kept inside."""
    side = len(source)
    out = np.empty((side, side), np.uint8)
    for y in range(side):
        for x in range(side):
            px, py = (min(max(c * 1024 + int(field[d, y, x]), 0), (side - 1) * 1024) for d, c in ((0, x), (1, y)))
            total = 0
            for cy in range(side):
                for cx in range(side):
                    total += (
                        int(source[cy, cx]) * max(0, 1024 - abs(px - cx * 1024)) * max(0, 1024 - abs(py - cy * 1024))
                    )
            out[y, x] = nearest(total, 2**20)
    return out


limits_of_kernel = st.fixed_dictionaries(
    {
        "side": st.integers(2, 9),
        "amplitude": st.integers(0, 2**18) | st.integers(0, 4096),
        "spacing": st.integers(1024, 2**18) | st.integers(1024, 8192),
        "shift": st.integers(0, 2**18) | st.integers(0, 4096),
        "margin": st.integers(1, 2**18) | st.integers(1, 8192),
        "tan_half_angle": st.integers(0, 2**16),
        "scale": st.integers(0, 2**16),
    }
)


def kernel(limits, seed, i, source=None):
    made = infinite._Limits(**limits)
    side = limits["side"]
    if source is None:
        field = np.empty((1, 2, side * side), np.int32)
        _core.digit_fields(made, seed, i, field)
        return field.reshape(2, side, side)
    out = np.empty((1, side * side), np.uint8)
    _core.digit_images(source.reshape(1, -1), made, seed, i, out)
    return out.reshape(side, side)


@settings(max_examples=60, deadline=None)
@given(limits=limits_of_kernel, seed=st.integers(0, MASK64), i=st.integers(0, 2**63 - 1), data=st.data())
def test_kernel_equals_its_twin(limits, seed, i, data):
    field = twin_field(limits, seed, i)
    assert np.array_equal(kernel(limits, seed, i), field)
    side = limits["side"]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    source = rng.integers(0, 256, (side, side), dtype=np.uint8)
    assert np.array_equal(kernel(limits, seed, i, source), twin_image(source, field))


def test_whole_images_equal_their_twin(endless):
    strengths = {name: DEFAULTS[name] for name in infinite.LIMITS}
    ticks = 1024 * 8 / 28
    limits = {
        "side": 8,
        "amplitude": round(strengths["displacement"] / (151 / 315 * np.sqrt(np.pi / 6)) * ticks),
        "spacing": round(strengths["smoothness"] * ticks),
        "shift": round(strengths["shift"] * ticks),
        "margin": round(infinite.MARGIN * ticks),
        "tan_half_angle": round(np.tan(np.radians(strengths["rotation"]) / 2) * 2**16),
        "scale": round(strengths["scale"] * 2**16),
    }
    plain = load("digits")
    for i in (0, 1_796, 1_797, 10**15):
        n_pass, position = divmod(i, 1_797)
        (row,) = oracles.permuted(1_797, oracles.mix64(3 ^ 0xD1B54A32D192ED03) + n_pass, position, 1)
        image = twin_image(plain.X[row].reshape(8, 8), twin_field(limits, 3, i))
        X, y = endless[i : i + 1]
        assert np.array_equal(X[0].reshape(8, 8), image)
        assert y[0] == plain.y[row]
        assert endless.source_rows(i, i + 1)[0] == row


# The same bytes everywhere --------------------------------------------------------------------------------


def test_known_bytes():
    """Computed once; another value on any machine or after any change breaks the promise of the set."""
    X, y = InfiniteDigits("digits")[0:1000]
    assert hashlib.sha256(X).hexdigest() == "a3c09642755f1abd05e0e307fda535d0bec8ebcbff9be116c8e9369bd2c99f6f"
    assert (
        hashlib.sha256(y.astype("<i8")).hexdigest()
        == "2ba6dd8154a4b3a0c435f082a0335b67de8cea118f59ce86a21d987ba33c3f6f"
    )


@needs_mnist
def test_known_bytes_of_mnist():
    X, _ = InfiniteDigits("mnist")[0:1000]
    assert hashlib.sha256(X).hexdigest() == "5550e8681686644b044a00f551b5dbcce7d6f0c4d7e20e71154cad71794e5e9f"


@settings(max_examples=20, deadline=None)
@given(start=st.integers(0, 10**18), before=st.integers(0, 40), n=st.integers(0, 60), threads=st.integers(1, 3))
def test_any_slice_is_the_same_images(endless, start, before, n, threads):
    start = max(start, before)
    X, y = endless.images(start - before, start + n, n_threads=threads)
    Z, z = endless[start : start + n]
    assert np.array_equal(X[before:], Z)
    assert np.array_equal(y[before:], z)
    assert np.array_equal(endless.labels(start, start + n), z)


def test_threads_give_the_same_bytes(endless):
    one, _ = endless.images(7, 5_000)
    for n_threads in (2, 3, -1):
        assert np.array_equal(endless.images(7, 5_000, n_threads=n_threads)[0], one)


def test_every_pass_uses_every_source_once(endless):
    rows = endless.source_rows(0, 3 * 1_797).reshape(3, -1)
    assert all(np.array_equal(np.sort(one), np.arange(1_797)) for one in rows)
    assert (rows[0] != rows[1]).mean() > 0.99
    other = InfiniteDigits("digits", seed=4).source_rows(0, 1_797)
    assert (rows[0] != other).mean() > 0.99


@needs_mnist
def test_parts_of_mnist():
    rows = {part: InfiniteDigits("mnist", part=part).source_rows(0, 5_000) for part in ("train", "test", "all")}
    assert rows["train"].max() < 60_000
    assert rows["test"].min() >= 60_000
    assert rows["all"].min() < 60_000 <= rows["all"].max()
    y = load("mnist").y
    assert np.array_equal(InfiniteDigits("mnist", part="test").labels(0, 5_000), y[rows["test"]])


# Deformations are what they are said to be ----------------------------------------------------------------


def fields_of_28(n=2_000, **strengths):
    fields = np.empty((n, 2, 784), np.int32)
    _core.digit_fields(infinite._limits(28, **{**DEFAULTS, **strengths}), 0, 0, fields)
    return fields.reshape(n, 2, 28, 28) / 1024


NONE = {"displacement": 0, "rotation": 0, "scale": 0, "shift": 0}
INSIDE = (..., slice(5, -5), slice(5, -5))


def mean_length(fields):
    return np.hypot(fields[:, 0], fields[:, 1]).mean()


def test_mean_displacement_is_more_than_a_pixel():
    assert mean_length(fields_of_28()) >= 1.4
    assert mean_length(fields_of_28(rotation=0, scale=0, shift=0)) >= 1.0


@pytest.mark.parametrize("displacement", [0.5, 1.25, 3.0])
@pytest.mark.parametrize("smoothness", [5.0, 8.0, 12.5])
def test_displacement_is_the_mean_length(displacement, smoothness):
    fields = fields_of_28(**{**NONE, "displacement": displacement, "smoothness": smoothness})
    assert mean_length(fields[INSIDE]) == pytest.approx(displacement, rel=0.05)


def test_displacements_of_the_class_are_those_of_the_kernel(endless):
    fields = endless.displacements(0, 500)
    assert (fields.shape, fields.dtype) == ((500, 2, 8, 8), np.float32)
    assert mean_length(fields) == pytest.approx(mean_length(fields_of_28()) * 8 / 28, rel=0.05)


def test_no_strength_gives_the_source():
    still = InfiniteDigits("digits", **NONE)
    X, _ = still[0:100]
    assert np.array_equal(X, load("digits").X[still.source_rows(0, 100)])


def test_rotation_size_and_shift_alone():
    y, x = np.mgrid[:28, :28] - 13.5
    for fields in (fields_of_28(**{**NONE, "rotation": 30}), fields_of_28(**{**NONE, "scale": 0.3})):
        moved = np.stack([x, y]) + fields
        a = (moved * np.stack([x, y]))[INSIDE].sum((1, 2, 3)) / (x**2 + y**2)[INSIDE].sum()
        b = (moved * np.stack([-y, x]))[INSIDE].sum((1, 2, 3)) / (x**2 + y**2)[INSIDE].sum()
        a, b = a[:, None, None], b[:, None, None]
        wanted = np.stack([a * x - b * y, b * x + a * y], axis=1)
        np.testing.assert_allclose(moved[INSIDE], wanted[INSIDE], atol=0.01)
        angle, size = np.degrees(np.arctan2(b, a)), np.hypot(a, b)
        if np.abs(angle).max() > 1:
            np.testing.assert_allclose(size, 1, atol=1e-3)
            assert (angle.min(), angle.max()) == (pytest.approx(-30, abs=0.5), pytest.approx(30, abs=0.5))
            assert np.abs(angle).mean() == pytest.approx(15, rel=0.06)
        else:
            assert (size.min(), size.max()) == (pytest.approx(0.7, abs=0.01), pytest.approx(1.3, abs=0.01))
            np.testing.assert_allclose(angle, 0, atol=0.01)
    shifts = fields_of_28(**{**NONE, "shift": 2})[INSIDE]
    assert np.ptp(shifts, axis=(2, 3)).max() == 0
    assert np.abs(shifts).max() == pytest.approx(2, abs=0.02)
    assert np.abs(shifts).mean() == pytest.approx(1, rel=0.06)


def test_fields_are_smooth_and_do_not_fold():
    fields = fields_of_28(rotation=0, scale=0, shift=0)
    steps = np.abs(np.diff(fields[INSIDE], axis=3))
    assert steps.max() < 1  # neighbours never change places
    assert np.abs(np.diff(fields[INSIDE], n=2, axis=3)).mean() < steps.mean() / 2
    y, x = np.mgrid[:28, :28]
    places = np.clip(fields_of_28() + np.stack([x, y]), 0, 27)
    (rx, dx), (ry, dy) = ((np.diff(p, axis=2)[:, :-1], np.diff(p, axis=1)[:, :, :-1]) for p in places.swapaxes(0, 1))
    area = rx * dy - ry * dx
    assert (area < 0).mean() < 2e-4
    assert area[INSIDE].min() > 0


def test_fields_differ_and_favour_no_place_or_direction():
    fields = fields_of_28(4_000)
    assert np.abs(fields.mean(axis=0)).max() < 0.2
    inside = fields[INSIDE].reshape(4_000, -1)
    lengths = np.linalg.norm(inside, axis=1)
    for lag in (1, 2, 60):
        cosines = (inside[lag:] * inside[:-lag]).sum(axis=1) / (lengths[lag:] * lengths[:-lag])
        assert abs(cosines.mean()) < 0.03
    deviation = fields[:, :, 5:-5, 5:-5].std(axis=0)
    assert deviation.max() / deviation.min() < 2.0


def test_nothing_is_cut_off_at_the_border():
    """A frame of ink around the image is still there on all sides."""
    frame = np.full((28, 28), 255, np.uint8)
    frame[2:-2, 2:-2] = 0
    out = np.empty((500, 784), np.uint8)
    _core.digit_images(frame.reshape(1, -1), infinite._limits(28, **DEFAULTS), 0, 0, out)
    images = out.reshape(-1, 28, 28)
    outermost = np.stack([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]])
    assert outermost.min() > 128
    assert (outermost == 255).mean() > 0.99


def test_values_stay_in_the_range_of_the_source(endless):
    X, _ = endless[0:2000]
    assert X.max() == 16
    assert X.max(axis=1).min() > 5


@needs_mnist
def test_what_reads_plain_digits_reads_deformed_ones():
    """The classifier never saw the deformed images nor their sources."""
    spec = importlib.util.spec_from_file_location("benchmark", ROOT / "benchmarks" / "infinite_digits.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    plain, deformed = benchmark.accuracies(n_train=15_000, n_test=5_000)
    assert plain >= 0.97
    assert deformed >= 0.93


# Files ----------------------------------------------------------------------------------------------------


def test_write(endless, tmp_path, monkeypatch):
    monkeypatch.setattr(infinite, "IMAGES_PER_BLOCK", 1_000)
    calls = []
    folder = endless.write(tmp_path / "new" / "set", 2_500, 70, n_threads=2, progress=lambda *a: calls.append(a))
    assert folder == tmp_path / "new" / "set"
    assert sorted(p.name for p in folder.iterdir()) == ["X.npy", "about.json", "y.npy"]
    assert [p.name for p in folder.parent.iterdir()] == ["set"]
    X, y = endless[70:2_570]
    mapped = np.load(folder / "X.npy", mmap_mode="r")
    assert mapped.dtype == np.uint8
    assert np.array_equal(mapped, X)
    assert np.array_equal(read_matrix(folder / "X.npy"), X)
    assert np.array_equal(read_vector(folder / "y.npy"), y)
    assert calls == [(1_000, 2_500), (2_000, 2_500), (2_500, 2_500)]
    about = json.loads((folder / "about.json").read_text())
    again = InfiniteDigits(**about["arguments"])
    assert repr(again) == repr(endless)
    assert (about["start"], about["n"]) == (70, 2_500)
    opened, labels = again.open_written(folder, 2_500, 70)
    assert isinstance(opened, np.memmap)
    assert not opened.flags.writeable
    assert np.array_equal(opened, X)
    assert np.array_equal(labels, y)


def test_write_nothing(endless, tmp_path):
    assert np.load(endless.write(tmp_path / "none", 0) / "X.npy").shape == (0, 64)
    assert endless.open_written(tmp_path / "none", 0)[0].shape == (0, 64)


def test_written_digits_are_these_or_refused(endless, tmp_path):
    folder = endless.write(tmp_path / "set", 50, 7)
    for other, n, start in ((InfiniteDigits("digits", seed=99), 50, 7), (endless, 49, 7), (endless, 50, 8)):
        with pytest.raises(DamagedFileError, match="must hold the images of"):
            other.open_written(folder, n, start)
    with pytest.raises(FileNotFoundError):
        endless.open_written(tmp_path / "none", 50, 7)


def test_changed_digits_are_said_or_the_same(endless, tmp_path):
    folder = endless.write(tmp_path / "set", 50)
    X, y = (np.array(one) for one in endless.open_written(folder, 50))
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(300):
        file = folder / ("X.npy", "y.npy", "about.json")[rng.integers(3)]
        before = file.read_bytes()
        data = bytearray(before)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        file.write_bytes(data[: rng.integers(len(data))] if rng.random() < 0.2 else data)
        try:
            found = endless.open_written(folder, 50)
        except StorageError:
            said += 1
        else:
            assert np.array_equal(found[0], X)
            assert np.array_equal(found[1], y)
        file.write_bytes(before)
    assert said > 250


def test_forged_and_special_files_are_refused(endless, tmp_path):
    folder = endless.write(tmp_path / "set", 50)
    labels = np.load(folder / "y.npy")
    np.save(folder / "y.npy", labels + 2**40)
    about = json.loads((folder / "about.json").read_text())
    about["sha256"]["y.npy"] = sha256_of_file(folder / "y.npy")
    (folder / "about.json").write_bytes(infinite._ABOUT.to_bytes(about))
    with pytest.raises(StorageError, match="must hold labels of 'digits'"):
        endless.open_written(folder, 50)
    for sums in (5, {}, {"X.npy": "no", "y.npy": "no"}):
        (folder / "about.json").write_bytes(infinite._ABOUT.to_bytes({**about, "sha256": sums}))
        with pytest.raises(StorageError):
            endless.open_written(folder, 50)
    (folder / "about.json").write_bytes(infinite._ABOUT.to_bytes(about))
    (folder / "X.npy").unlink()
    os.mkfifo(folder / "X.npy")
    with pytest.raises(StorageError, match="got a pipe"):
        endless.open_written(folder, 50)


def test_digits_of_the_version_before_open(endless, tmp_path):
    """Their about.json had the arguments beside the others, and no checksums."""
    folder = endless.write(tmp_path / "set", 50)
    about = json.loads((folder / "about.json").read_text())
    flat = {**about["arguments"], "start": 0, "n": 50}
    (folder / "about.json").write_text(json.dumps(flat))
    np.testing.assert_array_equal(endless.open_written(folder, 50)[0], endless[0:50][0])
    (folder / "X.npy").write_bytes((folder / "X.npy").read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match="must be u1 of shape"):
        endless.open_written(folder, 50)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_fails_half_way_leaves_nothing(endless, tmp_path, monkeypatch, error):
    monkeypatch.setattr(infinite, "IMAGES_PER_BLOCK", 1_000)

    def fail(done, n):
        if done >= 2_000:
            raise error

    with pytest.raises(type(error) if isinstance(error, OSError) else error):
        endless.write(tmp_path / "set", 4_000, progress=fail)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_grow_is_one_sentence(tmp_path):
    """The system refuses the bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    assert resource.RLIMIT_FSIZE
    script = (
        "import resource, sys; from ilhash.datasets import InfiniteDigits\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "try: InfiniteDigits('digits').write(sys.argv[1], 50_000)\n"
        "except OSError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", script, tmp_path / "set"], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == f"{tmp_path / 'set'} could not be written, and nothing is left of it: File too large"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(endless, tmp_path):
    (tmp_path / "file").write_text("mine")
    for name in ("file", "."):
        with pytest.raises(ValueError, match="must be a new folder"):
            endless.write(tmp_path / name, 10)
    with pytest.raises(OSError, match="could not be written"):
        endless.write(tmp_path / "file" / "set", 10)
    assert (tmp_path / "file").read_text() == "mine"


# Bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "fashion-mnist"}, "source must be one of 'mnist', 'digits', got 'fashion-mnist'"),
        ({"part": "test"}, "part must be one of 'train', 'all' for 'digits', got 'test'"),
        ({"part": None}, "part must be one of"),
        ({"seed": -1}, r"seed must be a whole number from 0 to 2\*\*64 - 1, got -1"),
        ({"seed": 2**64}, "seed must be"),
        ({"seed": 1.0}, "seed must be"),
        ({"seed": True}, "seed must be"),
        ({"displacement": -0.1}, "displacement must be a number from 0 to 5, got -0.1"),
        ({"displacement": "1"}, "displacement must be a number from 0 to 5, got '1'"),
        ({"smoothness": 3}, "smoothness must be a number from 4 to 28, got 3"),
        ({"smoothness": float("nan")}, "smoothness must be .* got nan"),
        ({"rotation": 46}, "rotation must be a number from 0 to 45, got 46"),
        ({"scale": 0.6}, "scale must be a number from 0 to 0.5, got 0.6"),
        ({"shift": float("inf")}, "shift must be a number from 0 to 8, got inf"),
        ({"shift": True}, "shift must be"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        InfiniteDigits(**{"source": "digits", **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.images(-1, 5), r"start must be a whole number from 0 to 2\*\*63 - 1, got -1"),
        (lambda e: e.images(0, 2**63), "stop must be a whole number"),
        (lambda e: e.images(0, 2.5), "stop must be a whole number .* got 2.5"),
        (lambda e: e.labels(5, 4), "stop must not be less than start, got start 5 and stop 4"),
        (lambda e: e.displacements("0", 4), "start must be"),
        (lambda e: e[-5:5], "start must be"),
        (lambda e: e.images(0, 5, n_threads=0), "n_threads must be .* got 0"),
        (lambda e: e.write("nowhere", -1), "n must be a whole number .* got -1"),
        (lambda e: e.write("nowhere", 1, n_threads=-2), "n_threads must be"),
        (lambda e: e.write("nowhere", 5, 2**63 - 2), "stop must be"),
    ],
)
def test_bad_calls(endless, call, message):
    with pytest.raises(ValueError, match=message):
        call(endless)
    assert not Path("nowhere").exists()


def test_the_kernel_refuses_what_it_could_not_hold():
    limits, out = infinite._limits(8, **DEFAULTS), np.empty((3, 64), np.uint8)
    sources = np.zeros((2, 64), np.uint8)
    for call in (
        lambda: _core.digit_images(sources[:0], limits, 0, 0, out),
        lambda: _core.digit_images(sources[:, :60].copy(), limits, 0, 0, out),
        lambda: _core.digit_images(sources, limits, 0, 0, out[:, :60].copy()),
        lambda: _core.digit_images(sources, limits._replace(spacing=1_023), 0, 0, out),
        lambda: _core.digit_images(sources, limits._replace(side=9), 0, 0, out),
        lambda: _core.digit_fields(limits, 0, 0, np.empty((3, 1, 64), np.int32)),
        lambda: _core.digit_fields(limits._replace(margin=0), 0, 0, np.empty((3, 2, 64), np.int32)),
        lambda: _core.digit_sources(0, 0, 0, 5),
    ):
        with pytest.raises(ValueError, match="must"):
            call()


@pytest.mark.parametrize("rows", [3, slice(0, 10, 2), slice(5, None), [1, 2]])
def test_only_slices_with_an_end(endless, rows):
    with pytest.raises(TypeError, match="takes slices start:stop, got"):
        endless[rows]
    with pytest.raises(TypeError, match="len"):
        len(endless)


def test_whole_numbers_of_numpy_are_whole_numbers():
    digits = InfiniteDigits("digits", seed=np.uint64(3), rotation=np.float32(10))
    assert np.array_equal(digits[np.int64(2) : np.int32(9)][0], InfiniteDigits("digits", seed=3)[2:9][0])


# The other doors ------------------------------------------------------------------------------------------


@needs_mnist
def test_load():
    data = load("infinite-digits", n=50)
    X, y = InfiniteDigits("mnist")[0:50]
    assert np.array_equal(data.X, X)
    assert np.array_equal(data.y, y)
    assert (data.image_shape, len(data.class_names), data.n_train) == ((28, 28), 10, None)


def test_load_wants_n_where_there_is_no_end():
    with pytest.raises(ValueError, match="n must be given for the dataset 'infinite-digits', which has no end"):
        load("infinite-digits")
    with pytest.raises(ValueError, match="n must not be given for the dataset 'digits', which has an end, got 10"):
        load("digits", n=10)
    assert next(info for info in available() if info.name == "infinite-digits").n_rows is None


def test_command_line(endless, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "ilhash", "data", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True)

    make = (
        "make",
        "infinite-digits",
        "--source",
        "digits",
        "--n",
        300,
        "--start",
        9,
        "--seed",
        3,
        "-o",
        tmp_path / "d",
    )
    first = run(*make)
    assert first.returncode == 0, first.stderr
    assert "made 300 images of 8 x 8 pixels" in first.stdout
    X, y = endless[9:309]
    assert np.array_equal(np.load(tmp_path / "d" / "X.npy"), X)
    assert np.array_equal(np.load(tmp_path / "d" / "y.npy"), y)
    again = run(*make)
    assert again.returncode == 2
    assert again.stderr.startswith("error: path must be a new folder")
    other = run("make", "infinite-cats", "--n", 3, "-o", tmp_path / "c")
    assert other.returncode == 2
    assert "infinite-digits, got 'infinite-cats'" in other.stderr
