"""``ilhash methods``: what --method of fit takes."""

from rich.table import Table

import ilhash
from ilhash.cli._screen import say


def methods() -> None:
    """List the methods that --method of fit takes."""
    table = Table("name", "labels", "what")
    table.columns[0].no_wrap = True
    table.add_row("ILH", "or not", "Independent Laplacian Hashing: every bit trained alone, different by diversity.")
    for name, line in ilhash.methods.available().items():
        table.add_row(name, "yes" if ilhash.methods.get(name).supervised else "no", line)
    say.print(table)
