"""The browser that pages are opened in; tests skip where there is none."""

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (  # no sandbox, because tests may run as root; nothing that speaks to the network by itself
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium():
    """Return the path of Chromium, or skip the test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium to open the page in")
    return found
