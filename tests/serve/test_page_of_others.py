"""The page in a real browser, with pictures, texts and models as other people have them."""

import http.server
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from tests.serve.pages import asked, draw, opened, served
from tests.serve.test_page import RING, browser, shown  # noqa: F401 (a fixture)

from ilhash import ILH, methods, serve


def test_a_drawing_keeps_the_margin_of_the_pictures(browser, tmp_path, digits):  # noqa: F811
    """Digits in the middle of larger pictures, as those of MNIST are: a drawn one lies as they do."""
    X, y = digits
    pictures = np.pad(np.kron(X.reshape(-1, 8, 8), np.ones((2, 2))), ((0, 0), (6, 6), (6, 6)))
    vectors = pictures.reshape(len(X), -1)
    model = ILH(n_bits=32, n_similar=30, n_dissimilar=30).fit(vectors, y)
    serve.make(tmp_path / "made", model, vectors, labels=y, pictures=pictures)
    with served(tmp_path / "made", log=tmp_path / "log.txt") as address, opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        page.click("text=Draw one")
        with page.expect_request("**/v1/search") as sent:
            draw(page, RING)
        drawn = np.reshape(sent.value.post_data_json["vectors"][0], (28, 28))
        page.wait_for_selector(".shown :text-is('Drawn')")
        page.wait_for_selector(".lists:not([aria-busy])")
        labels = page.locator(".tile .label").all_text_contents()
    rows = np.flatnonzero(drawn.max(axis=1) > 4)
    assert abs(rows[0] - 6) <= 1
    assert abs(rows[-1] - 21) <= 1
    assert labels.count(" 0") > 15


@pytest.fixture
def shop(tmp_path, digits):
    """A table, pictures in a folder, vectors and two models."""
    X, y = digits[0][:300], digits[1][:300]
    serve.make(tmp_path / "digits", ILH(n_bits=8, n_train=100).fit(X, y), X, pictures=X.reshape(-1, 8, 8))
    (tmp_path / "pictures").mkdir()
    with serve.Service(tmp_path / "digits") as service:
        for row in range(300):
            (tmp_path / "pictures" / f"sku {row}.png").write_bytes(service.pictures.file(row)[0])
    lines = [f'sku {row},digit {digit},"Number {row}, written"' for row, digit in enumerate(y)]
    (tmp_path / "items.csv").write_text("\n".join(["sku,class,title", *lines]) + "\n")
    np.save(tmp_path / "X.npy", X)
    ILH(n_bits=16, n_train=150, n_similar=20, n_dissimilar=20).fit(X, y).save(tmp_path / "model")
    methods.ITQ(n_bits=16).fit(X).save(tmp_path / "itq")
    return tmp_path


@pytest.fixture
def elsewhere(shop):
    """A server of the folder of pictures."""
    handler = partial(Quiet, directory=shop / "pictures")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{{id}}.png"
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.mark.parametrize("where", ["folder", "url"])
def test_pictures_texts_and_models_of_a_shop(browser, shop, elsewhere, where):  # noqa: F811
    """Pictures of a folder or elsewhere, ids, labels and texts of columns, another model beside the current one."""
    table = [f"--{name}={shop}/items.csv::{column}" for name, column in [("ids", "sku"), ("labels", "class")]]
    table.append(f"--texts={shop}/items.csv::title")
    pictures = shop / "pictures" if where == "folder" else elsewhere
    options = [f"--model={shop}/model", f"--vectors={shop}/X.npy", f"--pictures={pictures}", f"--also=itq={shop}/itq"]
    with (
        served(shop / "service", *options, *table, log=shop / "log.txt") as address,
        opened(browser, address, "#search/sku%203") as page,
    ):
        page.wait_for_selector(".tile")
        page.wait_for_function("() => [...document.images].every((one) => one.complete && one.naturalWidth === 8)")
        assert page.locator(".tile img").count() == 20
        first = page.locator(".tile").first.get_attribute("aria-label")
        item = asked(address, "/v1/search", {"ids": ["sku 3"], "k": 1})["hits"][0]["ids"][0]
        label = asked(address, f"/v1/items/{item.replace(' ', '%20')}")["label"]
        assert first.startswith(f"1. “Number {item.removeprefix('sku ')}, written”, label {label}, ")
        page.select_option("#second", "model:itq")
        page.wait_for_selector("#other-title:text-is('itq')")
        page.wait_for_selector(".lists:not([aria-busy])")
        other = asked(address, "/v1/search", {"ids": ["sku 3"], "k": 20, "model": "itq"})["hits"][0]["ids"]
        assert shown(page, "#other-title") == other
        assert page.locator("section.answers:has(#other-title) .mark").count() > 0


def test_the_demo_is_served(browser, tmp_path):  # noqa: F811
    """One command, and a page with digits on it."""
    command = [sys.executable, "-m", "ilhash", "demo", "--serve", "--output", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = next(line for line in process.stdout if line.startswith("serving on "))
            with opened(browser, said.split()[-1]) as page:
                page.wait_for_selector(".tile img")
                assert "1,797 items · 64 bits" in page.locator("#facts").text_content()
                assert page.locator("text=Draw one").count() == 1
        finally:
            process.terminate()
            process.wait(60)
