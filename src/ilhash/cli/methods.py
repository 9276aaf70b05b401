"""``ilhash methods``: what --method of fit takes."""

from rich.table import Table

import ilhash
from ilhash.cli._screen import say, tell


def methods() -> None:
    """List the methods that --method of fit takes."""
    table = Table("name", "labels", "auto N", "what")
    table.columns[0].no_wrap = table.columns[2].no_wrap = True
    table.columns[2].justify = "right"
    table.add_row(
        "ILH",
        "or not",
        "5,000 a bit",
        "Independent Laplacian Hashing: every bit trained alone, different by diversity.",
    )
    for name, line in ilhash.methods.available().items():
        method = ilhash.methods.get(name)
        table.add_row(name, "yes" if method.supervised else "no", f"{method.auto_train:,}", line)
    say.print(table)
    tell('auto N: training points with n_train="auto", or all there are (ILH: half of fewer than 10,000)')
    tell("ILH alone also takes --pairs and --affinity, and so do mixes of it with methods without labels")
