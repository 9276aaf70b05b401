"""The page of a service, in a real browser before a real server."""

import math
import shutil

import numpy as np
import pytest
from tests.browser import QUIET, chromium
from tests.serve.pages import (
    LOOP,
    PHONE,
    WIDE,
    answer,
    asked,
    digits_service,
    draw,
    opened,
    precision_by,
    served,
    teach,
)

from ilhash import ILH, serve

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
for needed in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed, reason="the extra serve is not installed")

SEEDED = "let s = %d; Math.random = () => ((s = (1103515245 * s + 12345) %% 2147483648) / 2147483648);"


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory, digits):
    return digits_service(tmp_path_factory.mktemp("made") / "digits", *digits)


@pytest.fixture(scope="module")
def address(tmp_path_factory, made):
    """One server for all tests that leave the model as it is."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(made, folder / "digits")
    with served(folder / "digits", log=folder / "log.txt") as address:
        yield address


def shown(page, order="#first-title"):
    """The ids of the answers under a title."""
    tiles = page.locator(f"section.answers:has({order}) .tile")
    return tiles.evaluate_all("tiles => tiles.map((one) => one.dataset.id)")


RING = [(0.5 + 0.22 * math.sin(t), 0.5 - 0.33 * math.cos(t)) for t in np.linspace(0, 2 * math.pi, 40)]
LINE = [(0.5, y) for y in np.linspace(0.15, 0.85, 12)]


# -------------------------------------------------------------------------------------------- search


def test_an_item_and_its_nearest(browser, address):
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        found = asked(address, "/v1/search", {"ids": [3], "k": 20})["hits"][0]
        assert shown(page) == [str(one) for one in found["ids"]]
        first = page.locator(".tile").first.get_attribute("aria-label")
        label = asked(address, f"/v1/items/{found['ids'][0]}")["label"]
        assert first.startswith(f"1. item {found['ids'][0]}, label {label}, {'right' if label == 3 else 'wrong'}, dist")
        page.evaluate("Math.random = () => 0.5")  # never item 3 itself
        page.click("text=Random item")
        page.wait_for_function("() => document.querySelector('.shown strong').textContent !== 'Item 3'")
        page.fill("#query-id", "7")
        page.keyboard.press("Enter")
        page.wait_for_selector(".shown :text-is('Item 7')")
        assert page.url.endswith("#search/7")


def test_an_unknown_item_is_said_to_be_unknown(browser, address):
    with opened(browser, address, "#search/3", refused=[404]) as page:
        page.wait_for_selector(".tile")
        page.fill("#query-id", "123456")
        page.click("text=Go")
        page.wait_for_selector("#trouble:not([hidden])")
        assert "123456" in page.locator("#trouble").text_content()
        page.click("text=Random item")
        page.wait_for_selector("#trouble", state="hidden")


def test_a_drawn_digit_finds_its_like(browser, address):
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        page.click("text=Draw one")
        draw(page, RING)
        page.wait_for_selector(".shown :text-is('Drawn')")
        page.wait_for_selector(".lists:not([aria-busy])")
        labels = page.locator(".tile .label").all_text_contents()
        assert len(labels) == 20
        assert labels.count(" 0") > 15
        assert page.locator(".note").text_content() == "A drawing is not an item: it cannot be judged."
        page.click("text=Clear")
        page.wait_for_selector("text=Draw something")
        assert page.locator(".tile:visible").count() == 0
        draw(page, LINE)
        page.wait_for_selector(".tile:visible")
        page.wait_for_selector(".lists:not([aria-busy])")
        assert page.locator(".tile .label").all_text_contents().count(" 1") > 10


def test_a_finger_draws(browser, address):
    with opened(browser, address, "#search/3", viewport=PHONE, has_touch=True, is_mobile=True) as page:
        page.wait_for_selector(".tile")
        page.tap("text=Draw one")
        page.locator(".pad").scroll_into_view_if_needed()
        box = page.locator(".pad").bounding_box()
        points = [{"x": box["x"] + box["width"] * x, "y": box["y"] + box["height"] * y} for x, y in RING]
        touch = page.context.new_cdp_session(page)
        touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
        for point in points[1:]:
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_selector(".shown :text-is('Drawn')")
        page.wait_for_selector(".lists:not([aria-busy])")
        assert page.locator(".tile .label").all_text_contents().count(" 0") > 15


def test_a_drawing_is_as_the_digits_are(browser, address, digits):
    """What becomes of drawn lines, against the mean of the digits that they mean."""
    X, y = digits
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        page.click("text=Draw one")
        with page.expect_request("**/v1/search") as sent:
            draw(page, RING)
        vector = np.array(sent.value.post_data_json["vectors"][0])
    assert vector.shape == (64,)
    assert vector.min() == 0
    assert 12 <= vector.max() <= 16
    means = np.array([X[y == digit].mean(axis=0) for digit in range(10)])
    assert np.linalg.norm(means - vector, axis=1).argmin() == 0
    assert 0.6 < vector.sum() / X[y == 0].sum(axis=1).mean() < 1.5


def test_fewer_bits_answer_and_the_chart_follows(browser, address):
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        page.wait_for_selector(".chart .here circle")
        asks = []
        page.on("request", lambda request: asks.append(request.url) if "search" in request.url else None)
        before = page.locator(".here circle").get_attribute("cx")
        page.locator("#n-bits").fill("5")
        page.wait_for_selector("h3:text-is('First 5 bits')")
        found = asked(address, "/v1/search", {"ids": [3], "k": 20, "n_bits": 5})["hits"][0]
        assert shown(page) == [str(one) for one in found["ids"]]
        assert page.locator(".here circle").get_attribute("cx") != before
        page.evaluate("""for (let n = 6; n < 30; n += 1) {
            const field = document.querySelector('#n-bits');
            field.value = n;
            field.dispatchEvent(new Event('input'));
        }""")
        page.wait_for_selector("h3:text-is('First 29 bits')")
        assert len(asks) == 2  # one when the slider had settled
        curve = asked(address, "/v1/precision?k=10")
        rows = page.locator(".precision tbody tr")
        assert rows.count() == len(curve["n_bits"])
        assert rows.last.text_content() == f"{curve['n_bits'][-1]}{curve['precision'][-1]:.3f}"


def test_a_second_order_and_its_differences(browser, address):
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".tile")
        page.select_option("#second", "order:vectors")
        page.wait_for_selector("#other-title:visible")
        one, other = shown(page), shown(page, "#other-title")
        exact = asked(address, "/v1/search", {"ids": [3], "k": 20, "order": "vectors"})["hits"][0]["ids"]
        assert other == [str(name) for name in exact]
        marks = page.locator("section.answers:has(#other-title) .tile").evaluate_all(
            "tiles => tiles.map((one) => one.querySelector('.mark')?.textContent ?? '')"
        )
        for rank, name in enumerate(other):
            moved = one.index(name) - rank if name in one else None
            wanted = (
                "only here" if moved is None else "" if moved == 0 else f"{abs(moved)} {'up' if moved > 0 else 'down'}"
            )
            assert marks[rank] == wanted
        for choice in page.locator("#second option").evaluate_all("all => all.map((one) => one.value).filter(Boolean)"):
            page.select_option("#second", choice)
            page.wait_for_function(
                "name => document.querySelector('#other-title').textContent === name",
                arg=page.locator(f"#second option[value='{choice}']").text_content(),
            )
            assert len(shown(page, "#other-title")) == 20


def test_arrows_go_through_answers_and_show_the_bits_that_differ(browser, address):
    with opened(browser, address, "#search/0") as page:
        page.wait_for_selector(".tile")
        page.locator(".tile").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        here = page.evaluate("document.activeElement.dataset.id")
        assert here not in shown(page)[:5]
        page.keyboard.press("End")
        here = page.evaluate("document.activeElement.dataset.id")
        assert here == shown(page)[-1]
        page.wait_for_selector(f".detail strong:text-is('Item {here}')")
        differ = asked(address, f"/v1/items/0/bits?with={here}")["differ"]
        assert page.locator(".numbers a").all_text_contents() == [str(bit) for bit in differ[:24]]
        assert page.locator(".field .differs").count() == len(differ)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('.detail') !== null")


# -------------------------------------------------------------------------------------------- bits


def test_the_bits(browser, address):
    with opened(browser, address, "#bits") as page:
        page.wait_for_selector("tr[data-bit]")
        told = asked(address, "/v1/bits")["bits"]
        assert page.locator("tr[data-bit]").count() == len(told)
        split = page.locator("tr[data-bit='3'] .split").get_attribute("aria-label")
        assert split.startswith(f"0: {100 * told[3]['split']['0']:.0f} %, 1: ")
        page.click("tr[data-bit='5'] th a")
        page.wait_for_selector("h2:text-is('Bit 5')")
        sides = asked(address, "/v1/bits/5?limit=8")
        ones = page.locator("[aria-labelledby=surest-one] button").evaluate_all("all => all.map((one) => one.title)")
        assert ones == [f"Search for item {item['id']}" for item in sides["surest_one"]]
        page.select_option("#bits-order", "balance")
        order = page.locator("tr[data-bit]").evaluate_all("all => all.map((one) => Number(one.dataset.bit))")
        assert order == sorted(range(len(told)), key=lambda bit: abs(told[bit]["balance"] - 0.5))
        page.locator("[aria-labelledby=surest-zero] button").first.click()
        page.wait_for_selector(f".shown :text-is('Item {sides['surest_zero'][0]['id']}')")


# -------------------------------------------------------------------------------------------- judging, learning


def test_judging_by_key_and_click(browser, address):
    with opened(browser, address, "#search/11") as page:
        page.wait_for_selector(".tile")
        before = asked(address, "/v1/judgements")["judgements"]
        page.locator(".tile").first.focus()
        page.keyboard.press("s")
        page.wait_for_selector(".tile .judged:has-text('≈ similar')")
        page.keyboard.press("d")
        page.wait_for_selector(".tile .judged:has-text('≠ not similar')")
        page.click(".verdict button:has-text('Not similar')")
        page.wait_for_function("() => document.querySelectorAll('.judged').length === 3")
        said = asked(address, "/v1/judgements")
        assert (said["judgements"], said["people"]) == (before + 3, 1)
        assert f"{before + 3} judgements" in page.locator("#facts").text_content()
        assert page.locator("#said").text_content().startswith("Item ")


def test_going_back_takes_a_judgement_back(browser, address):
    with opened(browser, address, "#teach") as page:
        page.wait_for_selector(".pair:focus")
        before = asked(address, "/v1/judgements")
        pair = page.locator(".pair").text_content()
        page.keyboard.press("s")
        page.wait_for_function("pair => document.querySelector('.pair').textContent !== pair", arg=pair)
        page.keyboard.press("u")
        page.wait_for_function("pair => document.querySelector('.pair').textContent === pair", arg=pair)
        assert page.locator("button.answer[aria-pressed=true]").text_content().startswith("≈ Similar")
        page.click("button.answer:has-text('Not similar')")
        page.wait_for_function("pair => document.querySelector('.pair').textContent !== pair", arg=pair)
        after = asked(address, "/v1/judgements")
        assert after["judgements"] == before["judgements"] + 2
        assert after["pairs"] == before["pairs"] + 1
        page.keyboard.press("ArrowRight")


def test_too_few_judgements_are_said_to_be_too_few(browser, tmp_path, made):
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    with served(folder, log=tmp_path / "log.txt") as address, opened(browser, address, "#teach") as page:
        page.wait_for_selector(".pair")
        for key in "sdsd":
            answer(page, key)
        page.click("text=Learn from these")
        page.wait_for_selector("text=The model stays as it is.")
        assert "are too few" in page.locator(".result").text_content()
        assert page.locator("text=Learn from these").is_enabled()


def learnt(browser, folder, log, y, seed, n=60):
    """Teach a closed loop from the page; give precision by it at 10, 100 and 300 before and after, and new bits."""
    notion = np.isin(y, LOOP)
    with served(folder, log=log) as address, opened(browser, address, "#search/3", ready=False) as page:
        page.wait_for_selector(".tile")
        page.add_init_script(SEEDED % seed)
        page.goto(f"{address}/?seeded#teach")
        page.wait_for_selector(".pair")
        before = [precision_by(notion, address, k) for k in (10, 100, 300)]
        teach(page, notion, n)
        page.click("text=Learn from these")
        page.wait_for_selector(".result h3")
        title = page.locator(".result h3").text_content()
        if "joined" in title:
            page.wait_for_selector(".change")
            _answers_changed(page, address)
        after = [precision_by(notion, address, k) for k in (10, 100, 300)]
    return before, after, title


def _answers_changed(page, address):
    """The page says what is new and what is gone, as the service has it, and shows the model of before beside."""
    for change in page.locator(".change").all():
        query = int(change.locator(".of strong").text_content().removeprefix("Item "))
        now = asked(address, "/v1/search", {"ids": [query], "k": 10})["hits"][0]["ids"]
        titles = change.locator("ul:not(.gone) button").evaluate_all("all => all.map((one) => one.title)")
        assert titles == [f"Search for item {name}" for name in now]
        new = change.locator("ul:not(.gone) .mark:text-is('new')").count()
        assert new == change.locator("ul.gone button").count()
    page.click("nav >> text=Search")
    page.wait_for_selector("#other-title:visible")
    assert page.locator("#first-title").text_content().startswith("All ")


def test_sixty_judgements_teach_a_new_notion(browser, tmp_path, made, digits):
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    before, after, title = learnt(browser, folder, tmp_path / "log.txt", digits[1], seed=1)
    assert "new bits joined" in title
    assert after[2] > before[2] + 0.02
    assert after[0] > before[0] - 0.01


@pytest.mark.slow
def test_sixty_judgements_teach_over_seeds(browser, tmp_path, digits):
    """Five models, five people: precision rises, and where sixty say too little it stays."""
    changes = []
    for seed in range(5):
        folder = digits_service(tmp_path / f"{seed}", *digits, seed=seed)
        before, after, title = learnt(browser, folder, tmp_path / f"{seed}.txt", digits[1], seed=10 + seed)
        change = np.subtract(after, before)
        changes.append(change)
        assert ("joined" in title) == bool(change.any())
    assert np.min(changes) > -0.03
    assert np.mean(changes, axis=0)[2] > 0.02
    assert np.mean(changes, axis=0)[0] > -0.005


# -------------------------------------------------------------------------------------------- tokens, what is missing


def test_a_token_is_asked_for_once_and_kept_in_the_tab(browser, tmp_path, made):
    tokens = tmp_path / "tokens"
    tokens.write_text("read a-token-for-reading\nwrite a-token-for-writing\n")
    tokens.chmod(0o600)
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    with (
        served(folder, "--tokens", str(tokens), log=tmp_path / "log.txt") as address,
        opened(browser, address, "#search/3", ready=False, refused=[401, 403]) as page,
    ):
        page.wait_for_selector("dialog[open]")
        assert page.evaluate("document.activeElement.id") == "token-field"
        page.fill("#token-field", "one-that-is-not-known")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=The service does not know that token.")
        page.fill("#token-field", "a-token-for-reading")
        page.keyboard.press("Enter")
        page.wait_for_selector(".tile img[src^='blob:']")
        page.wait_for_function("() => [...document.images].every((one) => one.complete && one.naturalWidth === 8)")
        page.click("button:has-text('≈ Similar')")
        page.wait_for_selector("#trouble:not([hidden])")
        assert page.locator("#trouble").text_content() == "the token must be one for writing, got one for reading"
        page.reload()
        page.wait_for_selector(".tile")
        assert page.locator("dialog[open]").count() == 0
        assert page.evaluate("[localStorage.getItem('ilhash-token'), document.cookie]") == [None, ""]


def test_a_service_that_only_reads_says_so(browser, tmp_path, made):
    folder = tmp_path / "digits"
    shutil.copytree(made, folder)
    with (
        served(folder, "--read-only", log=tmp_path / "log.txt") as address,
        opened(browser, address, "#search/3") as page,
    ):
        page.wait_for_selector(".tile")
        why = "This service is read-only: judgements cannot be given here."
        assert page.locator(".detail .note").text_content() == why
        assert page.locator("button:has-text('Similar')").count() == 0
        page.click("nav >> text=Teach")
        page.wait_for_selector(f"#view-teach >> text={why}")
        assert page.locator("text=Learn from these").is_disabled()
        assert "read-only" in page.locator("#facts").text_content()


@pytest.mark.parametrize("kind", ["texts", "codes"])
def test_items_without_pictures_labels_or_vectors(browser, tmp_path, digits, kind):
    X, y = digits
    model = ILH(n_bits=16, n_train=300).fit(X, y)
    if kind == "texts":
        texts = [f"<b>digit {digit}</b> &amp; number {row}" for row, digit in enumerate(y)]
        serve.make(tmp_path / "made", model, X, ids=[f"a/b {row}?" for row in range(len(X))], texts=texts)
    else:
        serve.make(tmp_path / "made", model, codes=model.transform(X))
    with served(tmp_path / "made", log=tmp_path / "log.txt") as address, opened(browser, address) as page:
        page.wait_for_selector(".tile")
        first = page.locator(".tile").first.text_content()
        assert ("<b>digit" in first) if kind == "texts" else first[:1].isdigit()
        assert page.locator("text=Draw one").count() == 0
        page.wait_for_selector("text=The items have no labels, so precision cannot be drawn.")
        page.locator("button:has-text('Search for it')").click()
        page.wait_for_selector(".tile")
        page.click("nav >> text=Bits")
        page.wait_for_selector("#view-bits h2:text-is('Bit 0')")
        assert "null" not in page.locator("#view-bits").text_content()
        page.click("nav >> text=Teach")
        page.wait_for_selector(".pair")
        assert page.locator("text=Learn from these").is_enabled() == (kind == "texts")
        if kind == "codes":
            asked(address, "/v1/items/remove", {"ids": list(range(len(X)))})
            page.goto(f"{address}/?empty")
            page.wait_for_selector("text=There are no items here yet.")


# -------------------------------------------------------------------------------------------- for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_axe_finds_nothing_serious(browser, address, size, scheme):
    checker = axe.Axe()
    with opened(browser, address, "#search/0", viewport=size, color_scheme=scheme, bypass_csp=True) as page:
        page.wait_for_selector(".tile")
        page.wait_for_selector(".chart", state="attached")
        page.click("text=Draw one")
        page.select_option("#second", "order:vectors")
        page.wait_for_selector("#other-title:visible")
        page.locator(".tile").last.focus()
        for view, there in (("search", ".tile"), ("bits", ".thumb"), ("teach", ".pair")):
            page.click(f"nav [data-view={view}]")
            page.wait_for_selector(f"#view-{view} {there}")
            found = checker.run(page).response["violations"]
            assert [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found] == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the screen"


def test_everything_is_reached_by_the_keyboard(browser, address):
    with opened(browser, address, "#search/3") as page:
        page.wait_for_selector(".chart")
        page.evaluate("document.activeElement.blur()")
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            here = page.evaluate("""() => {
                const one = document.activeElement;
                const ring = getComputedStyle(one);
                if (one === document.body) return null;
                return [one.id || one.className || one.textContent, ring.outlineStyle !== 'none'];
            }""")
            if here is None:
                break  # around once
            reached.append(here)
        names = [name for name, _ in reached]
        assert names[0] == "skip"
        for wanted in ("Search", "Bits", "Teach", "main", "query-id", "n-bits", "how-many", "second"):
            assert wanted in names, names
        assert sum("tile" in name.split() for name in names) == 1  # arrows go to the others
        assert all(ring for _, ring in reached), reached
