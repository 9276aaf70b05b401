"""GIST: how much of each scale and orientation an image holds in each of 4 x 4 blocks, 320 numbers.

After A. Oliva and A. Torralba, "Modeling the shape of the scene: a holistic representation of the spatial envelope",
IJCV 42, 2001, with the constants of the authors' program: local contrast is normalised first, then the image passes
20 Gabor filters given in the frequency domain, and the magnitude of each response is averaged over blocks.

Beyond its border the image is continued by its mirror image for ever. Such an image is a sum of cosines (its DCT-II),
so no Fourier transform of a padded image is needed: with the cosine coefficients c(p, q), a filter G(u, v) answers

    sum over p, q of c(p, q) [A cos cos - B sin sin + i (D cos sin + E sin cos)],

where the first factor is of row p, the second of column q, and A, B, D, E are the sums of G(+-p, +-q) / 4 with the
signs 1, of p and q, of q, of p. These are products of small real matrices, which BLAS does for many images at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._images import Floats, checked_images, described

ORIENTATIONS = (8, 8, 4)  # of each scale, fine to coarse
BLOCKS = 4  # in each direction
SIZE = sum(ORIENTATIONS) * BLOCKS * BLOCKS

FINEST, RATIO = 0.3, 1.85  # centre of the finest scale in cycles per pixel, and what divides it from scale to scale
CUT_OFF = 4  # cycles per image at which the contrast normalisation's low-pass filter has fallen to one half
LEAST_CONTRAST = 0.2  # added to the local deviation, so that flat regions do not become noise
# The cut-off is all that 8 pixels can show: normalisation would leave nothing of such an image.
LEAST_SIDE = 2 * CUT_OFF + 1
ROUNDING = 1e-6  # a relative contrast that is none: it would be stretched to pure noise
TOO_SMALL = f"GIST takes away what varies less than {CUT_OFF} times over an image, and fewer pixels show nothing else"


def gist(
    images: npt.ArrayLike, *, n_threads: int = 1, progress: Callable[[int, int], None] | None = None
) -> npt.NDArray[np.float32]:
    """Describe images by their GIST: 3 scales, 8 + 8 + 4 orientations, 4 x 4 blocks.

    Parameters
    ----------
    images : array-like of shape (n, rows, columns) or (n, rows, columns, 3)
        Grey or colour images of more than 8 x 8 pixels; of colours the mean is taken. Any range of values: each
        image is stretched to 0 ... 255 first.
    n_threads : int, the bytes are the same for any number; -1 for one per core
    progress : callable, optional, called with the number of images that are done, and n

    Returns
    -------
    ndarray of shape (n, 320), float32
        For each scale (fine to coarse), each orientation, the blocks row by row. Not standardised.

    Examples
    --------
    >>> stripes = np.zeros((1, 32, 32), np.uint8)
    >>> stripes[:, :, ::4] = 255
    >>> by_orientation = gist(stripes)[:, :128].reshape(8, 16).mean(axis=1)
    >>> int(by_orientation.argmax())  # of the finest scale: the grey changes from column to column
    0
    """
    array = checked_images(images, LEAST_SIDE, TOO_SMALL)
    bank = _bank(*array.shape[1:3])
    return described(array, SIZE, lambda part: _describe(_normalised(_grey(part), bank), bank), n_threads, progress)


# What depends on the size of the images alone -------------------------------------------------------------


class _Bank(NamedTuple):
    """Matrices for images of one size; p and q are frequencies of rows and columns, in half cycles per image."""

    lowpass: tuple[Floats, Floats]  # applied to rows and columns
    cosine_coefficients: tuple[Floats, Floats]  # (p, row) and (q, column)
    cosines: Floats  # (row, p)
    sines: Floats
    weights: tuple[Floats, Floats, Floats, Floats]  # A, B, D, E of (p, filter, 1, q)
    real: Floats  # (2 q, column): cosines above sines with the sign of the real part
    imaginary: Floats
    averages: tuple[Floats, Floats]  # (block, row) and (block, column)


def _bank(height: int, width: int) -> _Bank:
    waves = [np.pi / side * np.outer(np.arange(side), np.arange(side) + 0.5) for side in (height, width)]
    (cos_y, cos_x), (sin_y, sin_x) = [np.cos(wave) for wave in waves], [np.sin(wave) for wave in waves]
    dct_y, dct_x = _coefficients(cos_y), _coefficients(cos_x)
    longer = max(height, width)
    return _Bank(
        lowpass=(
            _single((cos_y.T * _damping(height, longer)) @ dct_y),
            _single((cos_x.T * _damping(width, longer)) @ dct_x),
        ),
        cosine_coefficients=(_single(dct_y), _single(dct_x)),
        cosines=_single(cos_y.T),
        sines=_single(sin_y.T),
        weights=_weights(height, width),
        real=_single(np.concatenate([cos_x, -sin_x])),
        imaginary=_single(np.concatenate([sin_x, cos_x])),
        averages=(_averages(height), _averages(width)),
    )


def _coefficients(cosines: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Inverse of the sum of cosines."""
    side = len(cosines)
    return cosines * np.where(np.arange(side) == 0, 1 / side, 2 / side)[:, None]


def _single(matrix: npt.NDArray[np.float64]) -> Floats:
    return np.ascontiguousarray(matrix, np.float32)


def _damping(side: int, longer: int) -> npt.NDArray[np.float64]:
    """Low-pass Gaussian at the frequencies of one axis; "per image" means per longer side."""
    cycles_per_image = np.arange(side) / (2 * side) * longer
    return np.exp2(-((cycles_per_image / CUT_OFF) ** 2))


def _weights(height: int, width: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Sum up A, B, D and E of every filter; see the top of this file."""
    sums = [np.zeros((height, sum(ORIENTATIONS), 1, width), np.float32) for _ in range(4)]
    filters = [(scale, turn, n) for scale, n in enumerate(ORIENTATIONS) for turn in range(n)]
    for sign_p, sign_q in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        down = (sign_p * np.arange(height) / (2 * height))[:, None]
        right = (sign_q * np.arange(width) / (2 * width))[None, :]
        for number, (scale, turn, n) in enumerate(filters):
            quarter = _gabor(np.hypot(down, right), np.arctan2(down, right), scale, turn, n) / 4
            for total, sign in zip(sums, (1, sign_p * sign_q, sign_q, sign_p), strict=True):
                total[:, number, 0] += sign * quarter
    return sums[0], sums[1], sums[2], sums[3]


def _gabor(
    frequency: npt.NDArray[np.float64], angle: npt.NDArray[np.float64], scale: int, turn: int, n_orientations: int
) -> npt.NDArray[np.float64]:
    """Transfer function: a bell around the centre of the scale, times a bell around the orientation."""
    off_scale = frequency * (RATIO**scale / FINEST) - 1
    off_angle = (angle + np.pi * turn / n_orientations + np.pi) % (2 * np.pi) - np.pi
    return np.exp(-3.5 * off_scale**2 - 2 * np.pi * (n_orientations / 8) ** 2 * off_angle**2)


def _averages(side: int) -> Floats:
    edges = np.arange(BLOCKS + 1) * side // BLOCKS
    inside = (edges[:-1, None] <= np.arange(side)) & (np.arange(side) < edges[1:, None])
    return _single(inside / inside.sum(axis=1, keepdims=True))


# A few images ---------------------------------------------------------------------------------------------


def _grey(images: npt.NDArray[Any]) -> Floats:
    """Mean of the colours, stretched to 0 ... 255; an image of one grey becomes black."""
    grey: npt.NDArray[np.float64] = images.astype(np.float64) if images.ndim == 3 else images.mean(axis=3, dtype="f8")
    low, high = grey.min(axis=(1, 2), keepdims=True), grey.max(axis=(1, 2), keepdims=True)
    flat = high - low <= ROUNDING * np.maximum(abs(low), abs(high))
    stretched = np.where(flat, 0, grey - low) / np.where(flat, 1, high - low)
    return (255 * stretched).astype(np.float32)


def _normalised(grey: Floats, bank: _Bank) -> Floats:
    """Take the local mean of the logarithm away, and divide by the local deviation."""
    rows, columns = bank.lowpass

    def smooth(images: Floats) -> Floats:
        smoothed: Floats = np.matmul(rows @ images, columns.T)
        return smoothed

    detail: Floats = np.log1p(grey)
    detail -= smooth(detail)
    # The smoothed squares can fall below zero by a rounding.
    detail /= LEAST_CONTRAST + np.sqrt(np.abs(smooth(detail * detail)))
    return detail


def _describe(images: Floats, bank: _Bank) -> Floats:
    n, height, width = images.shape
    rows, columns = bank.cosine_coefficients
    coefficients = np.ascontiguousarray(((rows @ images) @ columns.T).transpose(1, 0, 2))[:, None]  # (p, 1, n, q)
    shape = (height, sum(ORIENTATIONS), n, width)

    def along_rows(waves: Floats, weights: Floats) -> Floats:
        # p stands first, so one matrix product serves all filters and images.
        products: Floats = np.matmul(waves, (weights * coefficients).reshape(height, -1)).reshape(shape)
        return products

    def part(first: Floats, second: Floats, along_columns: Floats) -> Floats:
        both = np.concatenate([along_rows(bank.cosines, first), along_rows(bank.sines, second)], axis=3)
        summed: Floats = both.reshape(-1, 2 * width) @ along_columns
        return summed

    A, B, D, E = bank.weights
    power = part(A, B, bank.real)
    np.square(power, out=power)
    imaginary = part(D, E, bank.imaginary)
    power += np.square(imaginary, out=imaginary)
    magnitude = np.sqrt(power, out=power)

    in_rows, in_columns = bank.averages
    blocks = in_rows @ (magnitude @ in_columns.T).reshape(height, -1)
    return blocks.reshape(BLOCKS, -1, n, BLOCKS).transpose(2, 1, 0, 3).reshape(n, SIZE)
