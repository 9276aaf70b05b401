"""Pictures of the page of a service, from a run in a real browser: wide and narrow, light and dark.

``python -m tools.pictures_of_the_page docs`` serves the bundled digits, draws, compares, and teaches sixty judgements
by the notion "has a closed loop"; what is to be seen then is written to docs/serve-*.png.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright
from tests.browser import QUIET, chromium
from tests.serve.pages import LOOP, PHONE, WIDE, digits_service, draw, opened, served, teach

from ilhash import datasets

SEED = "let s = 5; Math.random = () => ((s = (1103515245 * s + 12345) % 2147483648) / 2147483648);"
NINE = [(0.5 + 0.17 * math.sin(t), 0.34 - 0.18 * math.cos(t)) for t in np.linspace(math.pi / 2, 2.5 * math.pi, 40)]
NINE += [(0.67 - 0.1 * step**2, 0.34 + 0.5 * step) for step in np.linspace(0, 1, 20)]


def keep(page: Page, path: Path) -> None:
    """Write a picture once nothing moves any more."""
    page.wait_for_load_state("networkidle")
    page.wait_for_selector(".lists:not([aria-busy])", state="attached")
    page.wait_for_function("() => [...document.images].every((one) => one.complete)")
    page.mouse.move(0, 0)
    page.screenshot(path=path, animations="disabled")
    print(f"{path}: {path.stat().st_size / 1024:.0f} kB")


def search(page: Page) -> None:
    """Search for an item, beside the order by vectors, with fewer bits."""
    page.wait_for_selector(".chart")
    page.fill("#n-bits", "20")
    page.select_option("#second", "order:vectors")
    page.wait_for_selector("#other-title:visible")
    page.wait_for_selector("h3:text-is('First 20 bits')")
    page.locator(".lists section:first-child .tile").nth(7).click()


def drawn(page: Page) -> None:
    """Draw a nine."""
    page.wait_for_selector(".tile")
    page.click("text=Draw one")
    page.locator(".pad").scroll_into_view_if_needed()
    draw(page, NINE)
    page.wait_for_selector(".shown :text-is('Drawn')")


def bits(page: Page) -> None:
    """Look at one of the bits."""
    page.wait_for_selector("#bit .thumb")
    page.click("tr[data-bit='4'] th a")
    page.wait_for_selector("h2:text-is('Bit 4')")


def taught(page: Page, notion: Any) -> None:
    """Give sixty judgements, and learn from them."""
    page.wait_for_selector(".pair")
    teach(page, notion, 60)
    page.click("text=Learn from these")
    page.wait_for_selector(".change")


def main() -> None:
    """Take all pictures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("output", type=Path)
    output = arguments.parse_args().output
    digits = datasets.load("digits")
    X, y = digits.X, np.asarray(digits.y)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        folder = digits_service(Path(scratch) / "digits", X, y, n_bits=64)
        browser = driver.chromium.launch(executable_path=chromium(), args=list(QUIET))
        with served(folder, log=Path(scratch) / "log.txt") as address:
            for name, where, act, look in (
                ("search", "#search/24", search, {}),
                ("search-dark", "#search/1", drawn, {"color_scheme": "dark"}),
                ("bits", "#bits", bits, {}),
                ("phone-dark", "#bits", bits, {"color_scheme": "dark", "viewport": PHONE}),
                ("phone", "#search/8", drawn, {"viewport": PHONE}),
            ):
                with opened(browser, address, where, **{"viewport": WIDE, **look}) as page:
                    act(page)
                    keep(page, output / f"serve-{name}.png")
            with opened(browser, address, "#search/3", ready=False) as page:
                page.add_init_script(SEED)
                page.goto(f"{address}/?seeded#teach")
                taught(page, np.isin(y, LOOP))
                keep(page, output / "serve-teach.png")
        browser.close()


if __name__ == "__main__":
    main()
