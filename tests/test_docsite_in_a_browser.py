"""The whole site, built and looked at in a real browser without a network; and the page of `ilhash reproduce`.

The environment variable ILHASH_SITE names a site that is built already.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
WEIGHT = {"index.html": 1_500_000, "tutorials/first-codes.html": 1_500_000}  # bytes that a first visit loads

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if "ILHASH_SITE" in os.environ:  # what `make docs` has built
        return Path(os.environ["ILHASH_SITE"]).resolve()
    pytest.importorskip("sphinx", reason='pip install "ilhash[docs]"')
    built = tmp_path_factory.mktemp("site") / "docs"
    session = {**os.environ, "XDG_RUNTIME_DIR": str(built.parent)}  # without which a package of PostgreSQL warns
    command = [sys.executable, ROOT / "tools" / "docsite" / "build.py", "--output", built]
    ran = subprocess.run(command, env=session, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return built


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    driver = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def address(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def serious(page):
    """Return what axe finds serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]


def test_nothing_is_asked_of_other_hosts(site):
    outside = re.compile(r"<(?:script|link|img|iframe|source)[^>]*(?:src|href)=[\"'](?:https?:)?//", re.IGNORECASE)
    pages = list(site.rglob("*.html"))
    assert len(pages) > 250
    for page in pages:
        assert not outside.search(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()[\s\"'(]*(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_no_tutorial_shows_a_traceback_or_a_warning(site):
    for page in (site / "tutorials").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"Traceback \(most|\w+Warning: ", text), page
        assert page.stem == "index" or "cell_output" in text, page


def test_no_machine_is_named(site):
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text(encoding="utf-8"), page


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "tutorials/first-codes.html", "api/ilhash.ILH.html"])
def test_pages_are_for_everybody(browser, address, name, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    loaded, said = [], []
    page.on("response", lambda one: loaded.append(one))
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.goto(address + name)
    page.wait_for_load_state("networkidle")
    assert said == []
    assert all(one.url.startswith((address, "data:")) and one.status == 200 for one in loaded)
    weight = sum(len(one.body()) for one in loaded if one.url.startswith(address))
    assert weight < WEIGHT.get(name, 2_000_000), weight
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wider) <= 0, "the page itself scrolls sideways"
    assert serious(page) == []
    context.close()


def test_search_finds_without_a_network(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{address}search.html?q=HammingIndex")
    page.wait_for_selector("#search-results li", timeout=60_000)
    assert "HammingIndex" in page.inner_text("#search-results")
    context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_the_report_page_is_for_everybody(browser, scheme, width):
    report = ROOT / "docs" / "results" / "paper.html"
    assert report.stat().st_size < 4_500_000  # figures as vector graphics, all in one file
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(report.as_uri())
    assert [one for one in asked if not one.startswith(("file:", "data:"))] == []
    assert serious(page) == []
    context.close()
