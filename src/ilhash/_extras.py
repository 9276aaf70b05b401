"""Modules that not everybody has: one import, one sentence."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional module, or say which command installs it.

    Parameters
    ----------
    module : str, its full name, such as ``"pyarrow.parquet"``
    extra : str, the extra of ilhash that brings it
    purpose : str, what needs it: the beginning of the sentence

    Returns
    -------
    module
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'{purpose} needs {package}, which could not be imported: pip install "ilhash[{extra}]"'
        ) from error
