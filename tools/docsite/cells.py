"""The cells of a tutorial as one plain Python program.

python tools/docsite/cells.py docs/tutorials/first-codes.md > first-codes.py
"""

import re
import sys
from pathlib import Path

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program(page: str) -> str:
    """Return the code of a tutorial; a cell that begins with ``%%writefile`` becomes a line that writes the file.

    Parameters
    ----------
    page : the tutorial's Markdown

    Returns
    -------
    str, Python
    """
    return "\n\n".join(_plain(cell) for cell in CELL.findall(page))


def _plain(cell: str) -> str:
    first, _, rest = cell.partition("\n")
    if not first.startswith("%%writefile "):
        return cell
    return f"import pathlib\npathlib.Path({first.split()[1]!r}).write_text({rest!r})\n"


if __name__ == "__main__":
    print(program(Path(sys.argv[1]).read_text(encoding="utf-8")))
