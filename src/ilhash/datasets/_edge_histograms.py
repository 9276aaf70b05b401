"""MPEG-7 edge histograms: which edges an image has in each of 4 x 4 sub-images, 150 numbers.

After C. S. Won, D. K. Park and S.-J. Park, "Efficient use of MPEG-7 edge histogram descriptor", ETRI Journal 24, 2002
(ISO/IEC 15938-3): about 1,100 small blocks, each of which has an edge of one of five types or none, are counted in
sub-images (80 local bins); the mean of all sub-images (5 global) and of 13 groups of four of them (65 semi-global) are
joined to these. The standard's coarse quantisation of bins, made for storage, is left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ilhash._checks import check_positive

from ._images import Floats, Images, Progress, checked_images, described, images_outside

SIDE = 4  # sub-images in each direction
LEAST_SIDE = 2 * SIDE  # a block is of 2 x 2 pixels at least, and each sub-image has one
WANTED_BLOCKS = 1100
# On the mean grey of the upper left, upper right, lower left and lower right quarter of a block.
FILTERS = {
    "vertical": (1, -1, 1, -1),
    "horizontal": (1, 1, -1, -1),
    "45 degrees": (2**0.5, 0, 0, -(2**0.5)),
    "135 degrees": (0, 2**0.5, -(2**0.5), 0),
    "non-directional": (2, -2, -2, 2),
}
TYPES = len(FILTERS)
LUMA = (299, 587, 114)  # thousandths of red, green and blue (ITU-R BT.601): whole numbers stay whole


def _groups() -> npt.NDArray[np.float64]:
    """Means over the sub-images (16 columns): all; rows; columns; quadrants; the centre."""
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    chosen = [np.ones(SIDE * SIDE, bool)]
    chosen += [row == number for number in range(SIDE)]
    chosen += [column == number for number in range(SIDE)]
    chosen += [(row // 2 == down) & (column // 2 == right) for down in range(2) for right in range(2)]
    chosen += [(row % 3 > 0) & (column % 3 > 0)]
    return np.array([group / group.sum() for group in chosen])


GROUPS = _groups()
SIZE = TYPES * (SIDE * SIDE + len(GROUPS))


def edge_histograms(
    images: npt.ArrayLike,
    *,
    threshold: float = 11.0,
    white: float | None = None,
    n_threads: int = 1,
    progress: Progress | None = None,
) -> npt.NDArray[np.float32]:
    """Describe images by their MPEG-7 edge histograms, local, global and semi-global.

    Parameters
    ----------
    images : array-like of shape (n, rows, columns) or (n, rows, columns, 3)
        Grey or colour images of at least 8 x 8 pixels; of colours the luma is taken (BT.601).
    threshold : float, default 11.0
        A block has an edge where its strongest filter answers with at least this, on grey values of 0 ... 255.
    white : float, optional, the value of white; black is 0. By default 255 for whole numbers, 1 for floats and bools
    n_threads : int, the bytes are the same for any number; -1 for one per core
    progress : callable, optional, called with the number of images that are done, and n

    Returns
    -------
    ndarray of shape (n, 150), float32, shares of blocks
        Five types of edges (vertical, horizontal, 45 degrees, 135 degrees, non-directional) of each of: 16 sub-images,
        row by row; the whole image; 4 rows; 4 columns; 4 quadrants; the centre.

    Examples
    --------
    >>> stripes = np.zeros((1, 32, 32), np.uint8)
    >>> stripes[:, :, 1::2] = 255
    >>> edge_histograms(stripes)[0, 80:85]  # of the whole image: every block is a vertical edge
    array([1., 0., 0., 0., 0.], dtype=float32)
    """
    array = checked_images(images, LEAST_SIDE, "each of 4 x 4 sub-images needs a block of 2 x 2 pixels")
    white = check_positive("white", white) if white is not None else 255.0 if array.dtype.kind in "iu" else 1.0
    outside = images_outside(array, 0, white)
    if outside:
        raise ValueError(
            f"images must hold values from 0 (black) to white = {white:g}, got others in {outside:,} of "
            f"{len(array):,} images"
        )
    least = check_positive("threshold", threshold) / 255 * white
    return described(array, SIZE, lambda part: _describe(part, least), n_threads, progress)


def _describe(images: Images, least: float) -> Floats:
    """Count the edges of a few images; ``least`` is the answer of a filter that makes an edge, in their own units."""
    height, width = images.shape[1:3]
    quarters, unit = _sums_of_quarters(images, _block_side(height, width))
    answers = np.abs(np.tensordot(np.array([*FILTERS.values()]), quarters, axes=1))  # (type, image, row, column)
    types = answers.argmax(axis=0)
    is_edge = answers.max(axis=0) >= least * unit
    n, rows, columns = types.shape
    down, right = (np.arange(blocks) * SIDE // blocks for blocks in (rows, columns))
    place = (np.arange(n)[:, None, None] * SIDE + down[:, None]) * SIDE + right
    bins = place * TYPES + types
    found = np.bincount(bins[is_edge], minlength=n * SIDE * SIDE * TYPES).reshape(n, SIDE * SIDE, TYPES)
    local = found / np.outer(np.bincount(down), np.bincount(right)).reshape(-1, 1)
    return np.concatenate([local, GROUPS @ local], axis=1).reshape(n, SIZE).astype(np.float32)


def _block_side(height: int, width: int) -> int:
    """Return an even number of pixels, so that there are about the wanted number of blocks, 4 x 4 at least."""
    wanted = int((height * width / WANTED_BLOCKS) ** 0.5) // 2 * 2
    return max(2, min(wanted, min(height, width) // LEAST_SIDE * 2))


def _sums_of_quarters(images: Images, side: int) -> tuple[npt.NDArray[np.float64], float]:
    """Return sums of grey in the quarters of each block, (quarter, image, row, column), and what divides them to means.

    What is left at the right and below, less than a block, is not looked at. Sums of whole numbers are exact: two
    filters that answer alike do so to the last digit, and the first of them counts.
    """
    n, height, width = images.shape[:3]
    half, rows, columns = side // 2, height // side, width // side
    whole = images[:, : rows * side, : columns * side].astype(np.float64)
    grey, unit = (whole, 1) if images.ndim == 3 else (whole @ np.array(LUMA, np.float64), sum(LUMA))
    sums = grey.reshape(n, rows, 2, half, columns, 2, half).sum(axis=(3, 6))  # (image, row, below, column, right)
    return sums.transpose(2, 4, 0, 1, 3).reshape(4, n, rows, columns), float(unit * half * half)
