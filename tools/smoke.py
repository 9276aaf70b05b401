"""What must work wherever ilhash was installed: learn, encode, search, store; exit with an error where it does not.

``python tools/smoke.py`` with the interpreter that is asked about; nothing but ilhash and what it needs is imported.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ilhash


def main() -> None:
    """Learn digits, search them, store the model, ask the command for its version."""
    data = ilhash.datasets.load("digits")
    model = ilhash.ILH(n_bits=16, n_similar=30, random_state=0).fit(data.X[:1000], data.y[:1000])
    codes = model.transform(data.X)
    hits = ilhash.HammingIndex(codes[:1000], n_bits=16).search(codes[1000:], k=10)
    precision = float((data.y[hits.ids] == data.y[1000:, None]).mean())
    if precision < 0.6:
        raise SystemExit(f"precision@10 of 16 bits must be above 0.6, got {precision:.3f}")
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model")
        same = np.array_equal(ilhash.load(Path(scratch) / "model").transform(data.X), codes)
    said = subprocess.run([sys.executable, "-m", "ilhash", "--version"], capture_output=True, text=True).stdout
    if not same or ilhash.__version__ not in said:
        raise SystemExit(f"a stored model must give the same codes, and the command its version, got {same}, {said!r}")
    print(f"precision@10 of 16 bits {precision:.3f}, kernels {ilhash.core_simd()}")


if __name__ == "__main__":
    main()
