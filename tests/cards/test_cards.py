"""Cards of models: true, bound to the model, and harmless whatever strangers called things."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import ilhash
from ilhash import ILH, HoldOut, StorageError, evaluation, methods
from ilhash.cards import Card, Curve, Measured, markdown, page
from ilhash.cards._markdown import MARK

HOSTILE = "`` | <script>alert(1)</script> [x](javascript:alert(1)) ![](http://evil/) \n# h1 \u202e\x00 & \"'"


@pytest.fixture(scope="module")
def model(digits):
    return ILH(n_bits=8, n_similar=10, n_train=200).fit(*digits)


def card_of(folder):
    return (Path(folder) / "README.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------- what it says


def test_a_card_says_what_the_model_is(model, tmp_path):
    model.save(tmp_path / "m")
    said = card_of(tmp_path / "m")
    assert said.startswith(f"{MARK}\n")
    for part in (
        "| bits | `8` |",
        "| learnt from | `labels` |",
        "n_bits=8, n_similar=10",
        model.fingerprint(),
        "1,797",
    ):
        assert part in said
    assert "Nothing was measured" in said
    loaded = ilhash.load(tmp_path / "m")
    assert markdown(loaded.card()) == said
    loaded.save(tmp_path / "again")
    assert card_of(tmp_path / "again") == said


@pytest.mark.parametrize(
    ("made", "given", "kind"),
    [
        (lambda X, y: ILH(4, n_train=99).fit(X), None, "vectors alone"),
        (lambda X, y: ILH(4, n_train=4).fit(X, pairs=[(0, 1, 1), (2, 3, -1), (1, 2, -1)], check=False), None, "pairs"),
        (lambda X, y: methods.ITQ(4).fit(X), None, "vectors alone"),
        (lambda X, y: ilhash.Mix([ILH(4, n_train=99), methods.CCAITQ(4)]).fit(X, y), None, "labels"),
    ],
)
def test_it_says_what_the_model_was_learnt_from(digits, made, given, kind, tmp_path):
    made(*digits).save(tmp_path / "m")
    assert f"| learnt from | `{kind}` |" in card_of(tmp_path / "m")
    assert ilhash.load(tmp_path / "m").learnt_from_ == kind


def test_results_stand_with_the_model_that_they_were_measured_with(digits, model, tmp_path):
    X, y = digits
    codes = model.transform(X)
    protocol = evaluation.Protocol(n_queries=100, k=(5, 10))
    split = protocol.split(y)
    found = protocol.evaluate(codes[split.base], y[split.base], codes[split.queries], y[split.queries], n_bits=8)
    one = ILH(n_bits=8, n_similar=10, n_train=200).fit(X, y)
    one.remember(found)
    one.remember(Measured("my items", "clicks", 0.25, 0.01, "A/B of June"))
    one.save(tmp_path / "m")
    said = card_of(tmp_path / "m")
    assert f"`precision@10` | {found.precision[10]:.4f} |  | `{protocol.hash}` |" in said
    assert "| `my items` | `clicks` | 0.2500 | 0.0100 | `A/B of June` |" in said
    loaded = ilhash.load(tmp_path / "m")
    assert loaded.measured() == one.measured()
    assert len(one.measured()) == 4
    assert loaded[:4].measured() == []
    assert loaded.add_bits(2, X, y).measured() == []
    assert model.measured() == []


def test_grow_prune_and_tune_remember_what_they_found(digits, no_clock):
    X, y = digits
    growth = ilhash.grow(ILH(n_similar=5, n_train=400), X, y, max_bits=6, held_out=HoldOut(100, n_report=100))
    names = [one.name for one in growth.model.measured()]
    assert names == ["points that chose the number of bits", "points that chose nothing"]
    assert growth.model.measured()[0].curve == tuple(growth.curve)
    assert growth.pool.measured() == [] or len(growth.pool.functions_) == growth.n_bits
    held_out = HoldOut(100, n_report=100)
    pruning = ilhash.prune(ILH(6, n_similar=5, n_train=400).fit(X, held_out.labels(y)), X, y, 3, held_out=held_out)
    assert [one.curve for one in pruning.model.measured()] == [tuple(pruning.report_seen)]
    tuning = ilhash.tune(X, y, n_bytes=1, minutes=0.01)
    (first, *_) = tuning.model.measured()
    assert (first.name, first.value, first.error) == (
        "new items",
        tuning.reports["new"].value,
        tuning.reports["new"].error,
    )


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ((3,), TypeError, "result must be an Evaluation, Tuning, Growth, Pruning or Measured, got int"),
        ((Measured("a", "b", float("nan")),), ValueError, "result must hold finite numbers"),
        ((Measured("a", "b", 1.0), 3), TypeError, "name must be a text or None, got int"),
    ],
)
def test_other_results_are_refused(model, given, error, sentence):
    with pytest.raises(error, match=sentence):
        model.remember(*given)


# ---------------------------------------------------------------------------------------------- the folder


def test_folders_without_a_card_open_and_a_card_is_not_the_model(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text("anything at all")
    assert ilhash.load(tmp_path / "m").fingerprint() == model.fingerprint()
    (tmp_path / "m" / "README.md").unlink()
    assert ilhash.load(tmp_path / "m").fingerprint() == model.fingerprint()


def test_the_card_of_another_model_is_replaced_and_that_of_a_person_is_not(model, tmp_path):
    model.save(tmp_path / "m")
    model[:4].save(tmp_path / "m")
    assert "of 4 bits" in card_of(tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text("# Mine\n")
    model.save(tmp_path / "m")
    assert card_of(tmp_path / "m") == "# Mine\n"
    assert len(ilhash.load(tmp_path / "m").functions_) == 8


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_whatever_is_called_readme_is_not_followed(model, tmp_path, kind):
    model[:4].save(tmp_path / "m")
    card, target = tmp_path / "m" / "README.md", tmp_path / "target"
    target.write_text(f"{MARK}\nof somebody")
    card.unlink()
    if kind in ("link", "dangling"):
        card.symlink_to(target if kind == "link" else tmp_path / "nowhere")
    elif kind == "pipe":
        os.mkfifo(card)
    else:
        card.mkdir()
    model.save(tmp_path / "m")
    assert len(ilhash.load(tmp_path / "m").functions_) == 8
    assert target.read_text() == f"{MARK}\nof somebody"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_with_a_card_alone_is_still_no_place_for_a_model(model, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "README.md").write_text(f"{MARK}\n")
    with pytest.raises(ValueError, match="with other files in it"):
        model.save(tmp_path / "m")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["README.md"]


def test_a_save_that_fails_never_leaves_the_card_of_another_model(model, tmp_path, monkeypatch):
    from ilhash.storage import _model_directory

    write, calls = _model_directory.write_file, []

    def failing(path, chunks, **given):
        calls.append(path.name)
        if len(calls) == stop:
            raise OSError("no space left")
        write(path, chunks, **given)

    for last in range(1, 4):
        stop = last
        shutil.rmtree(tmp_path / "m", ignore_errors=True)
        model.save(tmp_path / "m")
        calls.clear()
        monkeypatch.setattr(_model_directory, "write_file", failing)
        with contextlib.suppress(OSError):
            model[:4].save(tmp_path / "m")
        monkeypatch.setattr(_model_directory, "write_file", write)
        there = ilhash.load(tmp_path / "m")
        card = tmp_path / "m" / "README.md"
        assert not card.exists() or there.fingerprint() in card.read_text()
        model[:4].save(tmp_path / "m")
        assert "of 4 bits" in card_of(tmp_path / "m")


@pytest.mark.parametrize(
    "forged",
    [
        [{"name": 3, "measure": "x", "value": 1.0}],
        [{"name": "a", "measure": "x", "value": "1"}],
        [{"name": "a", "measure": "x"}],
        [{"name": "a", "measure": "x", "value": float("inf")}],
        [{"name": "a", "measure": "x", "value": 1.0, "curve": ["<"]}],
        [{"name": "a", "measure": "x", "value": 1.0, "protocol": []}],
        [3],
        {},
    ],
)
def test_forged_results_are_refused(model, tmp_path, forged):
    model.save(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    document = json.loads(config.read_text())
    document.pop("checksum")
    document["measured"] = forged
    from ilhash.storage._model_directory import _CONFIG

    config.write_bytes(_CONFIG.to_bytes({k: v for k, v in document.items() if k not in ("format", "ilhash")}))
    with pytest.raises(StorageError):
        ilhash.load(tmp_path / "m")


# ---------------------------------------------------------------------------------------------- strangers


def hostile_card():
    measured = [Measured(HOSTILE, HOSTILE, 0.5, None, HOSTILE, (0.1, 0.2, 0.15))]
    curves = [Curve(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: [0.1, 0.9], "flat": [0.3] * 1000})]
    return Card(HOSTILE, {"name": HOSTILE, "long": "x" * 10_000}, [HOSTILE], measured, curves, 8)


def without_code(text):
    """Markdown without its code, as CommonMark reads it: a run of backticks ends at the next run of the same length."""
    text = re.sub(r"^```python$.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).replace(MARK, "")
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", text)


def test_markdown_shows_strangers_texts_as_code_alone():
    text = markdown(hostile_card())
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "x" * 400 not in text
    bare = without_code(text)
    for markup in ("<", "](", "http:", "\n# h1", "&", "!"):
        assert markup not in bare, bare
    rows = [line for line in bare.splitlines() if line.startswith("| CODE")]
    assert rows
    assert all(line.replace("\\|", "").count("|") == 6 for line in rows)


class Reader(HTMLParser):
    """What a browser would make of a page: elements, attributes, text."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "line", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text):
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_a_page_shows_strangers_texts_as_text_alone():
    reader = read(page(hostile_card()))
    known = {
        *[
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "h1",
            "h2",
            "table",
            "caption",
            "tr",
            "th",
            "td",
            "div",
            "ul",
            "li",
            "svg",
            "desc",
            "line",
        ]
    }
    assert set(reader.tags) <= known | {"text", "polyline", "details", "summary"}
    names = {name for name, _ in reader.attributes}
    assert not {name for name in names if name.startswith("on") or name in ("href", "src", "action", "srcset", "style")}
    assert "<script>alert(1)</script>" in reader.text


def test_a_page_asks_nobody_and_has_its_curves(model):
    text = page(model.card())
    assert "default-src 'none'" in text
    assert "://" not in text
    reader = read(text)
    assert reader.tags.count("svg") == 1
    assert reader.tags.count("polyline") == 2
    assert "training accuracy" in reader.text
    assert "\u0000" not in reader.text


def test_a_model_may_name_features_and_generations_as_it_likes(digits, tmp_path):
    X, y = digits
    model = (
        ILH(n_bits=4, n_similar=10, n_train=200).fit(X, y).extend(2, X, y, name="`` | <script>alert(1)</script> ![](x)")
    )
    model.save(tmp_path / "m")
    bare = without_code(card_of(tmp_path / "m"))
    assert "<script" not in bare
    assert "<script>" not in page(ilhash.load(tmp_path / "m").card())


def test_a_card_is_plain_data():
    assert dataclasses.is_dataclass(Card)
    assert page(Card("t", {}, [], [], [Curve("c", "o", "u", {"empty": []})])).count("<svg") == 0
    assert np.isfinite([float(x) for x in re.findall(r'points="([\d.]+)', page(hostile_card()))]).all()


def test_a_browser_finds_nothing_to_object_to(model, tmp_path):
    """axe, in a real browser, light and dark, wide and narrow."""
    playwright = pytest.importorskip("playwright.sync_api")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        pytest.skip("no chromium is installed")
    one = ilhash.ILH(n_bits=4, n_similar=10, n_train=200)
    path = tmp_path / "page.html"
    path.write_text(page(dataclasses.replace(model.card(), measured=[Measured("a", "b", 0.5, curve=(0.1, 0.2))])))
    assert one is not None
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        asked = []
        for scheme, width in (("light", 1200), ("dark", 360)):
            tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
            tab.on("request", lambda request: asked.append(request.url))
            tab.goto(path.as_uri())
            tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            found = axe.Axe().run(tab).response["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.close()
    assert {url for url in asked if not url.startswith("file:")} == set()
