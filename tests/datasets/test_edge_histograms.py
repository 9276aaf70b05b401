"""Edge histograms against a form that looks at one block after the other."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash.datasets import _computed as computed
from ilhash.datasets import available, cache_home, edge_histograms, load
from ilhash.datasets._loaders import Dataset
from ilhash.datasets._registry import SPECS


def slow_block_edge(block, threshold):
    """Type of the edge in one square block of grey values, or None."""
    half = len(block) // 2
    a, b = block[:half, :half].mean(), block[:half, half:].mean()
    c, d = block[half:, :half].mean(), block[half:, half:].mean()
    answers = [
        abs(a - b + c - d),
        abs(a + b - c - d),
        abs(math.sqrt(2) * (a - d)),
        abs(math.sqrt(2) * (b - c)),
        abs(2 * a - 2 * b - 2 * c + 2 * d),
    ]
    return answers.index(max(answers)) if max(answers) >= threshold else None


def slow_edge_histogram(image, threshold=11.0):
    """One image of grey values or colours from 0 to 255."""
    grey = image.astype(np.float64)
    if grey.ndim == 3:
        grey = 299 * grey[:, :, 0] + 587 * grey[:, :, 1] + 114 * grey[:, :, 2]
        threshold = 1000 * threshold
    height, width = grey.shape
    side = 2 * math.floor(math.sqrt(height * width / 1100) / 2)
    while height // max(side, 2) < 4 or width // max(side, 2) < 4:  # every sub-image must have a block
        side -= 2
    side = max(side, 2)
    rows, columns = height // side, width // side
    local = np.zeros((4, 4, 5))
    n_blocks = np.zeros((4, 4))
    for i in range(rows):
        for j in range(columns):
            edge = slow_block_edge(grey[i * side : (i + 1) * side, j * side : (j + 1) * side], threshold)
            n_blocks[4 * i // rows, 4 * j // columns] += 1
            if edge is not None:
                local[4 * i // rows, 4 * j // columns, edge] += 1
    local /= n_blocks[:, :, None]
    parts = [local.reshape(80), local.mean(axis=(0, 1))]
    parts += [local[i].mean(axis=0) for i in range(4)]
    parts += [local[:, j].mean(axis=0) for j in range(4)]
    parts += [local[i : i + 2, j : j + 2].mean(axis=(0, 1)) for i in (0, 2) for j in (0, 2)]
    parts += [local[1:3, 1:3].mean(axis=(0, 1))]
    return np.concatenate(parts)


def noise(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    "shape", [(3, 32, 32), (2, 32, 32, 3), (2, 8, 8), (1, 9, 30, 3), (1, 150, 211), (1, 8, 700), (1, 90, 90, 3)]
)
def test_equals_the_slow_form(shape):
    images = noise(shape)
    images[0, :5] = 7  # a flat region
    got = edge_histograms(images)
    assert (got.shape, got.dtype) == ((len(images), 150), np.float32)
    np.testing.assert_allclose(got, [slow_edge_histogram(image) for image in images], atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(8, 40), columns=st.integers(8, 40), seed=st.integers(0, 2**32 - 1), levels=st.sampled_from([2, 5])
)
def test_equals_the_slow_form_at_any_size(rows, columns, seed, levels):
    """Few grey levels make many filters answer alike."""
    image = np.random.default_rng(seed).integers(0, levels, (rows, columns)).astype(np.uint8) * 9
    np.testing.assert_allclose(edge_histograms(image[None])[0], slow_edge_histogram(image), atol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "edge"),
    [
        ([[0, 255], [0, 255]], 0),
        ([[0, 0], [255, 255]], 1),
        ([[255, 128], [128, 0]], 2),
        ([[128, 255], [0, 128]], 3),
        ([[255, 0], [0, 255]], 4),
    ],
)
def test_each_type_of_edge_is_its_bin(pattern, edge):
    image = np.tile(np.array(pattern, np.uint8), (16, 16))
    np.testing.assert_array_equal(edge_histograms(image[None])[0].reshape(30, 5), np.tile(np.eye(5)[edge], (30, 1)))


def test_groups_of_sub_images():
    """One sub-image with edges shows in exactly the groups that it belongs to."""
    for row in range(4):
        for column in range(4):
            image = np.zeros((1, 32, 32), np.uint8)
            image[0, 8 * row : 8 * row + 8, 8 * column + 1 : 8 * column + 8 : 2] = 255
            found = np.flatnonzero(edge_histograms(image)[0].reshape(30, 5)[:, 0])
            wanted = [4 * row + column, 16, 17 + row, 21 + column, 25 + 2 * (row // 2) + column // 2]
            assert found.tolist() == wanted + [29] * (row in (1, 2) and column in (1, 2))


def test_shares_do_not_add_up_to_more_than_all():
    parts = edge_histograms(noise((20, 24, 24))).reshape(20, 30, 5)
    assert (parts >= 0).all()
    assert parts.sum(axis=2).max() <= 1 + 1e-6


def test_transposed_images_exchange_vertical_and_horizontal():
    images = noise((4, 32, 32)).astype(np.float64) / 255  # of equal answers the first would count
    plain, turned = (edge_histograms(part)[:, :80].reshape(4, 4, 4, 5) for part in (images, images.transpose(0, 2, 1)))
    np.testing.assert_array_equal(turned, plain.transpose(0, 2, 1, 3)[..., [1, 0, 2, 3, 4]])


def test_the_threshold_is_in_grey_values():
    image = np.zeros((1, 32, 32), np.uint8)
    image[:, :, 1::2] = 5  # vertical answer: 10
    assert edge_histograms(image)[0, 80] == 0
    assert edge_histograms(image, threshold=10)[0, 80] == 1
    assert edge_histograms(image, threshold=10.01)[0, 80] == 0
    assert edge_histograms(image // 5, white=51, threshold=10)[0, 80] == 1


def test_whites_of_whole_numbers_and_of_floats():
    images = noise((3, 16, 16, 3))
    expected = edge_histograms(images)
    np.testing.assert_array_equal(edge_histograms(images.astype(np.int64)), expected)
    np.testing.assert_array_equal(edge_histograms(images.astype(np.float32), white=255), expected)
    np.testing.assert_allclose(edge_histograms(images / 255), expected, atol=0.1)
    black_and_white = images[..., 0] > 127
    np.testing.assert_array_equal(edge_histograms(black_and_white), edge_histograms(black_and_white * 255))


def test_the_same_bytes_for_any_cut_and_any_number_of_threads():
    images = noise((50, 32, 32))
    expected = edge_histograms(images)
    for n_threads in (2, 3, -1):
        np.testing.assert_array_equal(edge_histograms(images, n_threads=n_threads), expected)
    np.testing.assert_array_equal(edge_histograms(images[7:20]), expected[7:20])


def test_input_stays_as_it_is_and_views_are_taken():
    planes = noise((4, 3, 16, 16))
    view = planes.transpose(0, 2, 3, 1)
    view.flags.writeable = False
    np.testing.assert_array_equal(edge_histograms(view), edge_histograms(np.ascontiguousarray(view)))
    np.testing.assert_array_equal(planes, noise((4, 3, 16, 16)))


def test_no_images_no_descriptors():
    assert edge_histograms(np.empty((0, 32, 32))).shape == (0, 150)


def test_progress_ends_with_all():
    calls = []
    edge_histograms(noise((19, 32, 32)), progress=lambda *done: calls.append(done))
    assert calls == [(8, 19), (16, 19), (19, 19)]


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (noise((5, 7, 9)), {}, r"^images must be at least 8 x 8 pixels, got 7 x 9"),
        (noise((32, 32)), {}, r"^images must be of shape \(n, rows, columns\)"),
        (noise((5, 32, 32)).astype(complex), {}, "^images must hold real numbers, got dtype complex128"),
        (np.full((5, 9, 9), np.nan), {}, "got others in 5 of 5 images"),
        (noise((5, 9, 9)) * 1.0, {}, r"from 0 \(black\) to white = 1, got others in 5 of 5 images"),
        (noise((5, 9, 9)).astype(int) - 1, {}, "to white = 255, got others in . of 5 images"),
        (noise((5, 9, 9)), {"white": 0}, "white must be a positive number, got 0"),
        (noise((5, 9, 9)), {"threshold": -1}, "threshold must be a positive number, got -1"),
        (noise((5, 9, 9)), {"n_threads": 0}, "n_threads must be a whole number"),
    ],
)
def test_what_is_refused(images, options, message):
    with pytest.raises(ValueError, match=message):
        edge_histograms(images, **options)


def test_the_dataset_is_computed_once_and_kept_apart_from_gist(tmp_path, monkeypatch):
    decoded = []

    def decode(name, folder):
        decoded.append(name)
        return Dataset(name=name, X=noise((12, 3072)), y=np.arange(12) % 10)

    monkeypatch.setattr(computed, "load_cifar10", decode)
    monkeypatch.setenv("ILHASH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cifar10").mkdir()
    for file in SPECS["cifar10"].layouts[0]:
        (tmp_path / "cifar10" / file).touch()
    edges = load("cifar10-edges", tmp_path)
    images = noise((12, 3072)).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(edges.X, edge_histograms(images))
    np.testing.assert_array_equal(load("cifar10-edges", tmp_path).X, edges.X)
    assert load("cifar10-gist", tmp_path).X.shape == (12, 320)
    assert decoded == ["cifar10-edges", "cifar10-gist"]
    assert len([*cache_home().iterdir()]) == 2
    (info,) = [info for info in available(tmp_path) if info.name == "cifar10-edges"]
    assert (info.n_rows, info.n_features, info.labeled, info.present) == (60_000, 150, True, True)
