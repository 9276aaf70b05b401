"""Which model made the codes of an index: codes of another mean something else, and would be found all the same."""

from __future__ import annotations

import re
from typing import Any

FINGERPRINT = re.compile("[0-9a-f]{64}")
BIT_FINGERPRINT = re.compile("[0-9a-f]{16}")

Bits = tuple[str, ...]


def fingerprint_of(model: Any, name: str = "model") -> str | None:
    """Return the fingerprint of a fitted model, of the one that made codes, or the one that is given; None for None."""
    found = model.fingerprint() if hasattr(model, "fingerprint") else getattr(model, "model", model)
    if found is None or (isinstance(found, str) and FINGERPRINT.fullmatch(found)):
        return found
    raise TypeError(f"{name} must be a fitted model or the fingerprint of one, got {type(model).__name__}")


def bits_of(made_by: Any) -> Bits | None:
    """Return a fingerprint for each bit of a fitted model or of codes; None where they are not known."""
    found = getattr(made_by, "bit_fingerprints", None)
    return None if found is None else tuple(found() if callable(found) else found)


def refuse_another(known: str | None, given: str | None, what: str) -> None:
    """Refuse what another model made; where either is not known, nothing is said."""
    if known is not None and given is not None and given != known:
        raise ValueError(
            f"{what} must be of the model whose codes the index holds ({known[:16]}...), got another ({given[:16]}...)"
        )
