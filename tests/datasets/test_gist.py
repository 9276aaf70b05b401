"""GIST against its textbook form, one image at a time in float64; and the dataset that is computed once."""

import functools
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ilhash.datasets import _computed as computed
from ilhash.datasets import available, cache_home, gist, load
from ilhash.datasets._loaders import Dataset
from ilhash.datasets._registry import SPECS

PRESENT = {info.name for info in available() if info.present}


def slow_lowpass(image):
    """Gaussian of half height at 4 cycles per longer side, on the image continued by its mirror image."""
    rows, columns = image.shape
    spectrum = np.fft.fft2(np.pad(image, ((0, rows), (0, columns)), mode="symmetric"))
    for u, down in enumerate(np.fft.fftfreq(2 * rows)):
        for v, right in enumerate(np.fft.fftfreq(2 * columns)):
            cycles = np.hypot(down, right) * max(rows, columns)
            spectrum[u, v] *= np.exp(-(cycles**2) / (4 / np.sqrt(np.log(2))) ** 2)
    return np.fft.ifft2(spectrum).real[:rows, :columns]


@functools.cache
def slow_gabor(rows, columns, scale, turn, n_orientations):
    transfer = np.empty((2 * rows, 2 * columns))
    for u, down in enumerate(np.fft.fftfreq(2 * rows)):
        for v, right in enumerate(np.fft.fftfreq(2 * columns)):
            radial = np.hypot(down, right) / (0.3 / 1.85**scale) - 1
            angle = np.arctan2(down, right) + np.pi * turn / n_orientations
            if angle > np.pi:
                angle -= 2 * np.pi
            transfer[u, v] = np.exp(-10 * 0.35 * radial**2 - 2 * np.pi * 16 * n_orientations**2 / 32**2 * angle**2)
    return transfer


def slow_gist(image):
    """As the paper and the authors' program say it."""
    grey = image.astype(np.float64) if image.ndim == 2 else image.astype(np.float64).mean(axis=2)
    rows, columns = grey.shape
    contrast = grey.max() - grey.min()
    grey = 255 * (grey - grey.min()) / (contrast if contrast > 0 else 1)
    detail = np.log(1 + grey)
    detail = detail - slow_lowpass(detail)
    detail = detail / (0.2 + np.sqrt(np.abs(slow_lowpass(detail**2))))
    spectrum = np.fft.fft2(np.pad(detail, ((0, rows), (0, columns)), mode="symmetric"))
    numbers = []
    for scale, n_orientations in enumerate((8, 8, 4)):
        for turn in range(n_orientations):
            response = np.fft.ifft2(spectrum * slow_gabor(rows, columns, scale, turn, n_orientations))
            magnitude = np.abs(response)[:rows, :columns]
            for i in range(4):
                for j in range(4):
                    block = magnitude[i * rows // 4 : (i + 1) * rows // 4, j * columns // 4 : (j + 1) * columns // 4]
                    numbers.append(block.mean())
    return np.array(numbers)


def noise(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


# The kernel -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 32, 32, 3), (2, 28, 28), (2, 9, 9), (1, 13, 30), (1, 41, 10, 3)])
def test_equals_the_slow_form(shape):
    images = noise(shape)
    images[0, :5] = 7  # a flat region
    got = gist(images)
    assert (got.shape, got.dtype) == ((len(images), 320), np.float32)
    np.testing.assert_allclose(got, [slow_gist(image) for image in images], rtol=1e-4, atol=1e-6)


@settings(max_examples=5, deadline=None)
@given(rows=st.integers(9, 16), columns=st.integers(9, 16), seed=st.integers(0, 2**32 - 1))
def test_equals_the_slow_form_at_any_size(rows, columns, seed):
    image = np.random.default_rng(seed).normal(size=(rows, columns))
    np.testing.assert_allclose(gist(image[None])[0], slow_gist(image), rtol=1e-4, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(factor=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3))
def test_brightness_and_contrast_do_not_matter(factor, offset):
    images = noise((2, 16, 16)).astype(np.float64)
    np.testing.assert_allclose(gist(factor * images + offset), gist(images), rtol=1e-4, atol=1e-6)


def test_extreme_values_are_stretched_too():
    images = noise((2, 16, 16)).astype(np.float64)
    for factor in (1e-300, 1e-30, 1e36):
        np.testing.assert_allclose(gist(factor * images), gist(images), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("grey", [0, 255, 0.1, -3e38])
def test_an_image_of_one_grey_has_no_edges(grey):
    np.testing.assert_array_equal(gist(np.full((2, 12, 12, 3), grey)), 0)


def test_rounding_is_no_contrast():
    image = np.full((1, 12, 12), 1 / 3)
    image[0, ::2] += 1e-12
    np.testing.assert_array_equal(gist(image), 0)


def test_colours_are_averaged():
    images = noise((3, 20, 20, 3))
    np.testing.assert_array_equal(gist(images), gist(images.mean(axis=3)))


def test_mirrored_images_have_mirrored_descriptors():
    """Orientation t of n becomes n - t, and the blocks change sides.

    Not to the last digit, for a filter also lets a little of the image's mean pass, less the further it is turned.
    """
    images = noise((2, 24, 24))
    plain = gist(images)[:, :128].reshape(2, 8, 4, 4)
    mirrored = gist(images[:, :, ::-1])[:, :128].reshape(2, 8, 4, 4)
    np.testing.assert_allclose(mirrored[:, 1:], plain[:, :0:-1, :, ::-1], rtol=3e-3)
    assert not np.allclose(mirrored[:, 1:], plain[:, 1:], rtol=0.1)


@pytest.mark.parametrize(("turn", "axis"), [(0, 2), (4, 1)])
def test_stripes_answer_in_their_orientation_and_scale(turn, axis):
    wave = np.sin(2 * np.pi * 0.3 * np.arange(40))
    image = np.broadcast_to(np.expand_dims(wave, (0, 3 - axis)), (1, 40, 40))
    by_filter = gist(image)[0].reshape(20, 16).mean(axis=1)
    assert by_filter.argmax() == turn


def test_the_same_bytes_for_any_cut_and_any_number_of_threads():
    images = noise((50, 32, 32))
    expected = gist(images)
    for n_threads in (2, 3, -1):
        np.testing.assert_array_equal(gist(images, n_threads=n_threads), expected)
    np.testing.assert_array_equal(gist(images[8:16]), expected[8:16])


def test_input_stays_as_it_is_and_views_are_taken():
    planes = noise((4, 3, 16, 16))
    before = planes.copy()
    view = planes.transpose(0, 2, 3, 1)
    view.flags.writeable = False
    np.testing.assert_array_equal(gist(view), gist(np.ascontiguousarray(view)))
    np.testing.assert_array_equal(planes, before)


def test_no_images_no_descriptors():
    assert gist(np.empty((0, 32, 32))).shape == (0, 320)


def test_progress_ends_with_all():
    calls = []
    gist(noise((19, 32, 32)), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(8, 19), (16, 19), (19, 19)]


@pytest.mark.parametrize(
    ("images", "parts"),
    [
        (noise((5, 8, 8)), ["at least 9 x 9", "8 x 8"]),
        (noise((5, 8, 8, 3)), ["at least 9 x 9", "8 x 8"]),
        (noise((5, 32, 4)), ["at least 9 x 9", "32 x 4"]),
        (noise((5, 0, 32)), ["at least 9 x 9", "0 x 32"]),
        (noise((32, 32)), ["(n, rows, columns)", "(32, 32)"]),
        (noise((5, 3, 32, 32)), ["(n, rows, columns, 3)", "(5, 3, 32, 32)"]),
        (noise((5, 32, 32)).astype(complex), ["real numbers", "complex128"]),
        (noise((5, 32, 32)).astype(str), ["real numbers", "<U"]),
    ],
)
def test_bad_images_are_refused_in_one_sentence(images, parts):
    with pytest.raises(ValueError, match=r"^images must ") as caught:
        gist(images)
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_images_that_are_not_finite_are_counted(value):
    images = noise((5, 10, 10)).astype(np.float64)
    images[[1, 3], 0, 0] = value
    with pytest.raises(ValueError, match=r"^images must hold finite numbers .* got others in 2 of 5 images$"):
        gist(images)


@pytest.mark.parametrize("n_threads", [0, -2, 1.5, True, "2"])
def test_bad_n_threads(n_threads):
    with pytest.raises(ValueError, match="n_threads must be a whole number"):
        gist(noise((1, 10, 10)), n_threads=n_threads)


# The dataset ----------------------------------------------------------------------------------------------


@pytest.fixture
def small_cifar(tmp_path, monkeypatch):
    """Stands in for CIFAR-10: 12 images, present in a folder of empty files; counts how often they are decoded."""
    decoded = []

    def decode(name, folder):
        decoded.append(name)
        return Dataset(name=name, X=noise((12, 3072)), y=np.arange(12) % 10)

    monkeypatch.setattr(computed, "load_cifar10", decode)
    monkeypatch.setenv("ILHASH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path / "cache" / "deeper"))
    (tmp_path / "data" / "cifar10").mkdir(parents=True)
    for file in SPECS["cifar10"].layouts[0]:
        (tmp_path / "data" / "cifar10" / file).touch()
    return decoded


def test_computed_once_and_then_read(small_cifar):
    calls = []
    first = load("cifar10-gist", progress=lambda *done: calls.append(done))
    assert calls[-1] == (12, 12)
    np.testing.assert_array_equal(first.X, gist(noise((12, 3072)).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)))
    assert (first.name, first.X.dtype, first.n_train, first.class_names[9]) == (
        "cifar10-gist",
        np.float32,
        50_000,
        "truck",
    )
    again = load("cifar10-gist")
    np.testing.assert_array_equal(again.X, first.X)
    np.testing.assert_array_equal(again.y, first.y)
    assert again.X.flags.writeable
    assert len(small_cifar) == 1
    assert len([*cache_home().iterdir()]) == 1  # nothing temporary is left


def _sealed(**arrays):
    """Return arrays as they are kept, checksum and all."""
    with tempfile.TemporaryDirectory() as folder:
        computed._FILE.write(Path(folder, "kept"), arrays)
        return Path(folder, "kept").read_bytes()


FORGED = {
    "no labels": lambda X, y: _sealed(X=X),
    "other labels": lambda X, y: _sealed(X=X, y=y + 1),
    "fewer labels": lambda X, y: _sealed(X=X, y=y[1:]),
    "other type": lambda X, y: _sealed(X=X.astype(np.float64), y=y),
    "not finite": lambda X, y: _sealed(X=X * np.float32(np.nan), y=y),
    "flat": lambda X, y: _sealed(X=X.ravel(), y=y),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_file_is_computed_again_and_said(forged, small_cifar):
    """Its checksum is right, but it is not what was asked for."""
    expected = load("cifar10-gist")
    (path,) = cache_home().iterdir()
    path.write_bytes(FORGED[forged](expected.X, expected.y))
    with pytest.warns(RuntimeWarning, match="is damaged .* must be"):
        found = load("cifar10-gist")
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)


@pytest.mark.parametrize("special", ["pipe", "link"])
def test_a_kept_file_is_a_file_of_its_own(special, small_cifar, tmp_path):
    expected = load("cifar10-gist").X
    (path,) = cache_home().iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere") if special == "link" else os.mkfifo(path)
    with pytest.warns(RuntimeWarning, match=f"is damaged .* got a .*{special}"):
        np.testing.assert_array_equal(load("cifar10-gist").X, expected)
    assert path.is_file()
    assert not path.is_symlink()


@pytest.mark.parametrize("damage", ["cut", "emptied", "one bit", "other arrays", "folder"])
def test_a_damaged_file_is_computed_again_and_said(damage, small_cifar):
    expected = load("cifar10-gist").X
    (path,) = cache_home().iterdir()
    whole = path.read_bytes()
    if damage == "cut":
        path.write_bytes(whole[:-1])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "one bit":
        path.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    elif damage == "other arrays":
        path.write_bytes(safetensors.numpy.save({"Z": expected}))
    else:
        path.unlink()
        path.mkdir()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_array_equal(load("cifar10-gist").X, expected)
    assert f"{path} is damaged" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert len(small_cifar) == 2
    if damage != "folder":
        assert path.read_bytes() == whole
        load("cifar10-gist")
        assert len(small_cifar) == 2


def test_another_version_is_another_file(small_cifar, monkeypatch):
    load("cifar10-gist")
    now = computed.DESCRIPTORS["cifar10-gist"]
    monkeypatch.setitem(computed.DESCRIPTORS, "cifar10-gist", now._replace(version=now.version + 1))
    load("cifar10-gist")
    assert len(small_cifar) == len([*cache_home().iterdir()]) == 2


def test_a_cache_that_cannot_be_written_is_said(small_cifar, tmp_path, monkeypatch):
    (tmp_path / "occupied").touch()
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path / "occupied" / "below"))
    with pytest.warns(RuntimeWarning, match=r"could not be written .* ILHASH_CACHE"):
        assert load("cifar10-gist").X.shape == (12, 320)


def test_missing_images_say_where_they_belong(tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        FileNotFoundError, match=r"'cifar10-gist' is missing .* files of 'cifar10'.* sub-folder 'cifar10'"
    ):
        load("cifar10-gist", tmp_path)
    assert not (tmp_path / "cache").exists()


def test_altered_images_are_refused_and_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cifar10").mkdir()
    for file in SPECS["cifar10"].layouts[0]:
        (tmp_path / "cifar10" / file).write_bytes(b"altered")
    with pytest.raises(ValueError, match="must have SHA-256"):
        load("cifar10-gist", tmp_path)
    assert not (tmp_path / "cache").exists()


def test_listed_with_the_folder_of_its_source(tmp_path):
    (info,) = [info for info in available(tmp_path) if info.name == "cifar10-gist"]
    assert (info.n_rows, info.n_features, info.labeled, info.present) == (60_000, 320, True, False)
    assert info.path == tmp_path / "cifar10"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder for caches is another one on other systems")
@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        ({"ILHASH_CACHE": "elsewhere"}, ("elsewhere",)),
        ({"XDG_CACHE_HOME": "/xdg"}, ("xdg", "ilhash")),
        ({}, (".cache", "ilhash")),
    ],
)
def test_cache_home(variables, parts, monkeypatch):
    for name in ("ILHASH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_home().parts[-len(parts) :] == parts


@pytest.mark.slow
@pytest.mark.skipif("cifar10" not in PRESENT, reason="ILHASH_DATA does not hold cifar10")
def test_a_linear_classifier_reads_cifar10(tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path))
    cifar = load("cifar10-gist")
    assert (cifar.X.shape, cifar.y.shape) == ((60_000, 320), (60_000,))
    model = make_pipeline(StandardScaler(), RidgeClassifier(50)).fit(cifar.X[:50_000], cifar.y[:50_000])
    assert model.score(cifar.X[50_000:], cifar.y[50_000:]) >= 0.56
