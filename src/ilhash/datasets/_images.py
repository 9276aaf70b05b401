"""What every descriptor of images does: look at what it was given, and go through it in parts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ilhash._checks import as_array, check_threads
from ilhash.parallel import single_threaded_blas

Floats = npt.NDArray[np.float32]
Images = npt.NDArray[Any]
Progress = Callable[[int, int], None]

PIXELS_PER_TASK = 8 * 32 * 32  # intermediate arrays stay in a core's cache


def described(
    images: Images, size: int, describe: Callable[[Images], Floats], n_threads: int, progress: Progress | None
) -> Floats:
    """Return the descriptors (n, size) of images, a few of which ``describe`` does at a time."""
    n, height, width = images.shape[:3]
    threads = check_threads(n_threads)
    result = np.empty((n, size), np.float32)
    step = max(1, PIXELS_PER_TASK // (height * width))

    def one_part(first: int) -> None:
        part = slice(first, first + step)
        result[part] = describe(images[part])

    with single_threaded_blas(), ThreadPoolExecutor(threads) as pool:
        starts = range(0, n, step)
        for first, _ in zip(starts, pool.map(one_part, starts), strict=True):
            if progress is not None:
                progress(min(first + step, n), n)
    return result


def checked_images(images: npt.ArrayLike, least_side: int, reason: str) -> Images:
    """Refuse what is no array of grey or colour images; the reason completes why ``least_side`` is the least."""
    array: Images = as_array("images", images)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"images must hold real numbers, got dtype {array.dtype}")
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] != 3):
        raise ValueError(f"images must be of shape (n, rows, columns) or (n, rows, columns, 3), got {array.shape}")
    height, width = array.shape[1:3]
    if min(height, width) < least_side:
        raise ValueError(
            f"images must be at least {least_side} x {least_side} pixels, got {height} x {width}: {reason}"
        )
    most = float(np.finfo(np.float32).max)
    outside = images_outside(array, -most, most) if array.dtype.kind == "f" else 0
    if outside:
        raise ValueError(
            f"images must hold finite numbers of at most {most:.1e} in size, got others in {outside:,} of "
            f"{len(array):,} images"
        )
    return array


def images_outside(images: Images, low: float, high: float) -> int:
    """Return how many images hold a number outside some bounds, or none at all."""
    if not len(images):
        return 0
    pixels = tuple(range(1, images.ndim))
    darkest, lightest = images.min(axis=pixels), images.max(axis=pixels)  # NaN if one pixel is
    return int(np.sum(~((darkest >= low) & (lightest <= high))))
