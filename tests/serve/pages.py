"""A service of digits in a process of its own, and pages of it in a real browser."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import numpy as np

from ilhash import ILH, serve

WIDE, PHONE = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
SECONDS = 60_000  # milliseconds that a step may take on a busy machine
LOOP = (0, 6, 8, 9)  # digits with a closed loop


def digits_service(folder, X, y, n_bits=32, seed=0):
    """Make the folder of a service of digits."""
    model = ILH(n_bits=n_bits, n_similar=30, n_dissimilar=30, random_state=seed).fit(X, y)
    serve.make(folder, model, X, labels=y, pictures=X.reshape(-1, 8, 8))
    return folder


@contextmanager
def served(folder, *options, log):
    """Serve a folder by the command, and give the address."""
    command = [sys.executable, "-m", "ilhash", "serve", str(folder), "--port", "0", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    with open(log, "wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True)
        try:
            with process.stdout:
                yield _address(process, log)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _address(process, log):
    for line in process.stdout:
        found = re.search(r"http://\S+", line)
        if found:
            return found[0]
    raise AssertionError(log.read_text())


def asked(address, path, body=None):
    """Ask a service without its page."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def precision_by(notion, address, k):
    """Return precision at k by a notion (n,), of items whose ids are their rows, each a query."""
    queries = np.arange(0, len(notion), 2)
    right = []
    for some in np.array_split(queries, 4):
        hits = asked(address, "/v1/search", {"ids": some.tolist(), "k": k})["hits"]
        found = np.array([hit["ids"] for hit in hits])
        right.append((notion[found] == notion[some][:, None]).mean(axis=1))
    return float(np.concatenate(right).mean())


@contextmanager
def opened(browser, address, where="", *, ready=True, refused=(), **context):
    """Open the page in a context of its own; whatever it says on the console, or fails at, is a failure at the end.

    Browsers say of themselves that a request was refused: ``refused`` are the answers that are meant to be.
    """
    wrong = []
    own = browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **context})
    try:
        page = own.new_page()
        page.set_default_timeout(SECONDS)
        page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{address}/{where}")
        if ready:
            page.wait_for_selector("body[data-ready]")
        yield page
    finally:
        own.close()
    expected = [f"error: Failed to load resource: the server responded with a status of {status}" for status in refused]
    assert [one for one in wrong if not one.startswith(tuple(expected))] == []


def draw(page, points):
    """Draw a line on the canvas, its points in shares of its size."""
    box = page.locator(".pad").bounding_box()
    at = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in points]
    page.mouse.move(*at[0])
    page.mouse.down()
    for point in at[1:]:
        page.mouse.move(*point)
    page.mouse.up()


def answer(page, key):
    """Judge the pair that is asked about, and wait for the next."""
    before = page.locator(".counted .big").text_content()
    pair = page.locator(".pair").text_content()
    page.keyboard.press(key)
    page.wait_for_function(
        """([count, pair]) => document.querySelector('.counted .big').textContent !== count
            && document.querySelector('.pair').textContent !== pair""",
        arg=[before, pair],
    )


def teach(page, notion, n):
    """Answer n pairs by a notion of rows, with keys."""
    for _ in range(n):
        texts = page.locator(".pair figcaption span:first-child").all_text_contents()
        one, other = (int(text.removeprefix("Item ")) for text in texts)
        answer(page, "s" if notion[one] == notion[other] else "d")
