"""What a service answers is what index, model and brute force say; over HTTP, by a real server."""

import http.client
import importlib.util
import json
import shutil

import numpy as np
import pytest

import ilhash
from ilhash import codes
from ilhash.client import ServiceError
from ilhash.serve import Service, make
from ilhash.serve._pictures import ink
from ilhash.serve._searching import Asked
from ilhash.serve._service import Change


def ask(server, method, path, body=None, headers=None):
    """Make one request; return status, headers and content."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    about = {"Content-Type": "application/json"} if body is not None else {}
    connection.request(method, path, data, {**about, **(headers or {})})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, content


def problem(answer):
    status, headers, content = answer
    document = json.loads(content)
    assert headers["content-type"] == "application/problem+json"
    assert document["status"] == status
    return status, document["detail"]


# ------------------------------------------------------------------------------------------------ searches


def test_searches_are_those_of_the_index(client, digits, model):
    X = digits[0]
    index = ilhash.HammingIndex(model.transform(X), n_bits=32)
    margins = model.decision_function(X)
    some = X[:7]
    expected = index.search(model.transform(some), k=5)
    for found in (client.search_vectors(some, 5), client.search(model.transform(some), 5)):
        assert found.ids == expected.ids.tolist()
        assert found.distances == expected.distances.tolist()
        assert (found.exact, found.order, found.n_bits, found.model) == (True, "hamming", 32, "current")
    weighed = index.search_asymmetric(margins[:7], k=5)
    found = client.search_vectors(some, 5, order="asymmetric")
    assert found.ids == weighed.ids.tolist()
    assert np.allclose(found.distances, weighed.distances)
    own = ilhash.HammingIndex(model.transform(X), n_bits=32, margins=margins).search_margins(margins[:7], k=5)
    assert client.search_vectors(some, 5, order="margins").ids == own.ids.tolist()


def test_the_first_bits_are_searched_as_if_there_were_no_others(client, digits, model):
    X = digits[0]
    for n_bits in (1, 5, 8, 17, 31, 32):
        index = ilhash.HammingIndex(model[:n_bits].transform(X), n_bits=n_bits)
        expected = index.search(model[:n_bits].transform(X[:5]), k=9)
        found = client.search_vectors(X[:5], 9, n_bits=n_bits)
        assert (found.ids, found.distances) == (expected.ids.tolist(), expected.distances.tolist())
        margins = model[:n_bits].decision_function(X[:5])
        weighed = client.search_vectors(X[:5], 9, n_bits=n_bits, order="asymmetric")
        assert weighed.ids == index.search_asymmetric(margins, k=9).ids.tolist()


def test_all_within_a_radius(client, digits, model):
    index = ilhash.HammingIndex(model.transform(digits[0]), n_bits=32)
    queries = model.transform(digits[0][:40])
    for radius in (0, 2, 5):
        found, wanted = client.within(queries, radius), index.within(queries, radius)
        parts = [slice(*bounds) for bounds in zip(wanted.offsets, wanted.offsets[1:], strict=False)]
        assert found.ids == [wanted.ids[part].tolist() for part in parts]
        assert found.distances == [wanted.distances[part].tolist() for part in parts]
    assert [len(ids) for ids, _ in client.within(queries, 32, k=7)] == [7] * 40
    near = client.search_ids([3], 20, order="vectors")
    some = client.search_ids([3], 20, order="vectors", radius=near.distances[0][4])
    assert (some.ids[0], some.distances[0]) == (near.ids[0][:5], near.distances[0][:5])


def test_vectors_are_searched_by_brute_force(client, digits):
    X = digits[0].astype(np.float32)
    found = client.search_vectors(X[3:5] + 0.25, 6, order="vectors")
    for query, (ids, distances) in zip(X[3:5] + 0.25, found, strict=True):
        every = np.linalg.norm(X - query, axis=1)
        assert ids == np.argsort(every, kind="stable")[:6].tolist()
        assert np.allclose(distances, np.sort(every)[:6], atol=1e-4)


@pytest.mark.parametrize("order", ["hamming", "asymmetric", "margins", "vectors"])
def test_an_item_is_no_answer_to_itself(client, digits, order):
    found = client.search_ids([5, 9], 4, order=order)
    assert all(own not in ids and len(ids) == 4 for own, ids in zip([5, 9], found.ids, strict=True))
    alone = client.search_ids([5, 9], 4, order=order, without_self=False)
    assert alone.distances == client.search_vectors(digits[0][[5, 9]], 4, order=order).distances


def test_codes_of_vectors(client, digits, model):
    assert client.encode(digits[0][:3]) == codes.to_hex(model.transform(digits[0][:3]), 32)


def test_wrong_searches_are_refused_in_a_sentence(server, client):
    wrong = {
        "vectors must have 64 numbers each, got 2": {"vectors": [[1, 2]]},
        "k must be at most 1000 at a time, got 1001": {"ids": [1], "k": 1001},
        "n_bits must be at most the 32 of the model, got 33": {"ids": [1], "n_bits": 33},
        "n_bits must be left out with order margins, got 3 of 32": {"ids": [1], "n_bits": 3, "order": "margins"},
        "one of vectors, codes, ids must be given, got none": {"k": 3},
        "order asymmetric must be asked with vectors or ids, got codes": {"codes": ["00000000"], "order": "asymmetric"},
        "queries must be at most 1000 at a time, got 1001": {"ids": [1] * 1001},
    }
    for sentence, body in wrong.items():
        assert problem(ask(server, "POST", "/v1/search", body)) == (422, sentence)
    gone = ask(server, "POST", "/v1/search", {"ids": [1, 5000]})
    assert problem(gone) == (404, "ids must be in the index, got 1 of 2 others, first 5000")
    with pytest.raises(ServiceError, match="model must be one of current, got 'x'"):
        client.search_ids([1], model="x")


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "1e39", "1" + "0" * 400, "true", '"1"', "null"]
)
def test_numbers_that_are_none_are_refused(server, number):
    body = f'{{"vectors": [[{number}, {", ".join("0" * 63)}]]}}'.encode()
    for path in ("/v1/search", "/v1/encode", "/v1/items"):
        status, sentence = problem(ask(server, "POST", path, body))
        assert status == 422
        assert sentence.startswith("vectors must ")


def test_the_pages_numbers(client, digits, model):
    info = client.info()
    assert (len(client), client.n_bits, info["model"]["dimension"]) == (1797, 32, 64)
    assert info["items"]["labels"] == list(range(10))
    assert {name: round(value) for name, value in info["items"]["pictures"]["ink"].items()} == {
        "height": 8,
        "width": 8,
        "pen": 2,
    }
    assert info["orders"] == ["hamming", "asymmetric", "margins", "vectors"]
    bits = codes.unpack(model.transform(digits[0]), 32)
    told = client._get("/v1/bits")["bits"]
    assert np.allclose([bit["balance"] for bit in told], bits.mean(axis=0))
    assert np.isclose(told[3]["split"]["7"], bits[digits[1] == 7, 3].mean(), atol=1e-4)
    one = client._get("/v1/bits/3?limit=4")
    margins = model.decision_function(digits[0])[:, 3]
    assert [item["id"] for item in one["surest_one"]] == np.argsort(-margins)[:4].tolist()
    assert [item["id"] for item in one["surest_zero"]] == np.argsort(margins)[:4].tolist()
    two = client._get("/v1/items/3/bits?with=4")
    assert two["differ"] == np.flatnonzero(bits[3] != bits[4]).tolist()
    curve = client._get("/v1/precision?k=10")
    assert curve["n_bits"][-1] == 32
    assert curve["precision"][-1] > 0.9 > 0.3 > curve["precision"][0]


def test_items_and_pictures(server, client, digits):
    assert client.item(5)["label"] == int(digits[1][5])
    assert [item["id"] for item in client.look([7, 3])] == [7, 3]
    assert [item["id"] for item in client] == list(range(1797))
    assert client.random(3, seed=1) == client.random(3, seed=1) != client.random(3, seed=2)
    assert 5 in client
    assert 5000 not in client
    picture = client.picture(5)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    for path in ("/v1/items/5000", "/v1/items/x", "/v1/items/5/bits?with=x", "/v1/pictures/-1", "/v1/bits/32"):
        assert problem(ask(server, "GET", path))[0] == 404


# ------------------------------------------------------------------------------------------------ changes


def test_changes(folder, start, digits, model):
    X = digits[0]
    with ilhash.Client(start(folder).address) as client:
        assert client.add(X[:2] + 1, labels=[0, 1], texts=["a", None]) == [1797, 1798]
        assert client.add(X[2:3], [9000]) == [9000]
        assert client.item(1797)["text"] == "a"
        assert client.item(1797)["code"] == codes.to_hex(model.transform(X[:1] + 1), 32)[0]
        client.update(X[10:11], [1797])
        assert (client.item(1797)["text"], client.item(1797)["code"]) == ("a", client.item(10)["code"])
        assert client.picture(1797) == client.picture(10)
        client.remove([3, 1798])
        assert 3 not in client
        assert len(client) == 1797 + 3 - 2
        assert client.add(X[:1]) == [9001]
        assert client.search_vectors(X[10:11], 2, order="vectors").ids == [[10, 1797]]
        for wrong, status, sentence in [
            (lambda: client.add(X[:2], [9001, 9002]), 409, "ids must be new, got 1 of 2 that are in the index"),
            (lambda: client.add(X[:2], [1, 1]), 422, "ids must be distinct, got 1 of 2 again"),
            (lambda: client.add(X[:1], ["x"]), 422, "ids must be of the kind of this index"),
            (lambda: client.update(X[:1], [3]), 404, "ids must be in the index"),
            (lambda: client.remove([3]), 404, "ids must be in the index"),
            (lambda: client.add(codes=["00000000"]), 422, "items must come with vectors to this service"),
        ]:
            with pytest.raises(ServiceError, match=sentence) as refused:
                wrong()
            assert refused.value.status == status


def test_what_was_changed_is_there_again(folder, start, digits):
    X = digits[0]
    first = start(folder)
    with ilhash.Client(first.address) as client:
        client.add(X[:3] + 1, labels=["x", "y", None])
        client.update(X[20:21], [0])
        client.remove([5])
        client.judge(1, [2, 3], [True, False], who="ann")
        before = client.look([0, 1797, 1798, 1799], margins=True), client.judgements(), len(client)
    first.stop()
    with ilhash.Client(start(folder).address) as client:
        after = client.look([0, 1797, 1798, 1799], margins=True), client.judgements(), len(client)
    assert before == after


def test_texts_as_ids_and_codes_alone(tmp_path, start, digits, model):
    X = digits[0][:50]
    names = [f"item/{i} é?" for i in range(50)]
    make(tmp_path / "s", model, codes=model.transform(X), ids=names, texts=[f"text {i}" for i in range(50)])
    with ilhash.Client(start(tmp_path / "s").address) as client:
        info = client.info()
        assert (info["orders"], info["learning"], info["items"]["labels"]) == (["hamming", "asymmetric"], False, None)
        assert client.item(names[7])["text"] == "text 7"
        assert client.search_vectors(X[:1], 1).ids == [[names[0]]]
        client.add(codes=client.codes(names[:1]), ids=["new"], texts=["more"])
        assert client.item("new")["text"] == "more"
        assert client._get(f"/v1/items/{'item%2F7%20%C3%A9%3F'}/bits?with=new")["margins"] is None
        for wrong, sentence in [
            (lambda: client.learn(), "learning must be asked of a service that keeps vectors"),
            (lambda: client.add(X[:1]), "ids must be given to a service whose ids are texts"),
            (lambda: client.search_ids(["new"], order="vectors"), "order must be one of hamming, asymmetric here"),
            (lambda: client.search_ids(["new"], order="asymmetric"), "must be asked with vectors here"),
        ]:
            with pytest.raises(ServiceError, match=sentence):
                wrong()


def test_updates_that_come_together_leave_what_each_does_not_name(folder, digits):
    X = digits[0].astype(np.float32)
    with Service(folder) as service:
        changes = [
            Change("update", [1], X[[8]], labels=["new"]),
            Change("update", [2], X[[9]]),
            Change("update", [3], X[[9]], texts=["text"]),
            Change("add", [5000], X[[9]], labels=["x"]),
            Change("add", [5001], X[[9]], texts=["y"]),
        ]
        assert service.change(changes) == [[1], [2], [3], [5000], [5001]]
        items = service.state.items
        rows = items.rows([1, 2, 3, 5000, 5001]).tolist()
        assert [items.label(row) for row in rows] == ["new", 2, 3, "x", None]
        assert [items.text(row) for row in rows] == [None, None, "text", None, "y"]


def test_what_was_said_of_an_item_goes_with_it(tmp_path, digits, model):
    codes_of = codes.to_hex(model.transform(digits[0][:3]), 32)
    make(tmp_path / "s", model, codes=model.transform(digits[0][:3]), labels=["a", "b", "c"])
    with Service(tmp_path / "s") as service:
        service.change([Change("remove", [1])])
        service.change([Change("add", [1, 7], codes=codes_of[:2])])
        assert [service.state.items.label(row) for row in service.state.items.rows([0, 1, 7]).tolist()] == [
            "a",
            None,
            None,
        ]


def test_searches_in_batches_are_searches_one_by_one(folder, digits):
    """Whatever is put together, each gets its own answer, or what is wrong with it."""
    X = digits[0].astype(np.float32)
    with Service(folder) as service:
        asked = [
            Asked(vectors=X[:2], k=3),
            Asked(ids=[1, 2], k=3),
            Asked(codes=["zz"], k=3),
            Asked(codes=["00112233"], k=3),
            Asked(ids=[99999], k=3),
            Asked(vectors=X[:1], k=4, order="vectors"),
            Asked(vectors=X[5:6], k=3),
            Asked(vectors=X[5:6], k=3, n_bits=7),
        ]
        together = service.search(asked)
        for one, found in zip(asked, together, strict=True):
            (alone,) = service.search([one])
            assert type(found) is type(alone)
            assert str(found) == str(alone)


# ------------------------------------------------------------------------------------------------ learning


def test_learning_a_new_notion(folder, start, digits):
    X, y = digits
    loop = np.isin(y, [0, 6, 8, 9])
    rng = np.random.default_rng(0)
    queries, items = rng.integers(0, len(X), (2, 300))
    kept = queries != items
    with ilhash.Client(start(folder).address) as client:
        unjudged = client.learn()
        assert (unjudged.state, unjudged.n_new) == ("unchanged", 0)
        for query, item in zip(queries[kept][:3].tolist(), items[kept][:3].tolist(), strict=True):
            client.judge(query, item, bool(loop[query] == loop[item]))
        body = [
            {"query": query, "item": item, "similar": bool(loop[query] == loop[item])}
            for query, item in zip(queries[kept][3:].tolist(), items[kept][3:].tolist(), strict=True)
        ]
        client._post("/v1/judgements", {"judgements": body})

        def right():
            found = client.search_vectors(X[:300], 20)
            return float(np.mean(loop[np.array(found.ids)] == loop[:300, None]))

        before, steps = right(), []
        learnt = client.learn(progress=lambda done, total: steps.append((done, total)))
        assert (learnt.state, learnt.n_new > 0, learnt.after > learnt.before) == ("done", True, True)
        assert steps[-1] == (10, 10)
        assert right() > before
        info = client.info()
        assert info["model"]["n_bits"] == 32 + learnt.n_new
        assert info["models"] == ["current", "00001"]
        assert client.search_vectors(X[:5], 3, model="00001").n_bits == 32
        added = client.add(X[:1])
        assert client.item(added[0])["code"] == client.item(0)["code"]
    learned = ilhash.load(folder / "models" / "00002")
    with ilhash.HammingIndex.open(folder / "index", writable=False) as index:
        assert index.model == learned.fingerprint()


def test_a_kill_between_saving_and_following_leaves_the_old_model(folder, digits, model):
    extended = model[:].extend(4, *digits)
    extended.save(folder / "models" / "00002")  # and then it was killed
    with Service(folder) as service:
        assert (service.state.name, service.state.n_bits) == ("00001", 32)
        service.adopt(extended, 4)
        assert (service.state.name, service.state.n_bits) == ("00003", 36)
    with Service(folder) as service:
        assert (service.state.name, service.state.n_bits, service.state.before) == ("00003", 36, {"00001": 32})


# ------------------------------------------------------------------------------------------------ several servers


def wait_until(condition, seconds=30):
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_second_server_reads_and_follows(folder, start, digits, model):
    X = digits[0]
    writer, reader = start(folder), start(folder)
    with ilhash.Client(writer.address) as first, ilhash.Client(reader.address) as second:
        assert (first.info()["writable"], second.info()["writable"]) == (True, False)
        for wrong in (lambda: second.add(X[:1]), lambda: second.judge(1, 2), lambda: second.learn()):
            with pytest.raises(ServiceError, match="must be the one that writes to its folder") as refused:
                wrong()
            assert refused.value.status == 403
        first.add(X[:1] + 1, [4000], labels=["seen"])
        first.judge(1, 2)
        first.remove([7])
        wait_until(lambda: 4000 in second and 7 not in second and second.judgements()["judgements"] == 1)
        assert second.item(4000)["label"] == "seen"
    writer.stop()
    with Service(folder) as service:
        service.adopt(model[:].extend(8, *digits), 8)
    with ilhash.Client(reader.address) as second:
        wait_until(lambda: second.n_bits == 40)
        ids, own = second.search_ids([4000], 1, order="vectors"), second.search_vectors(X[:3], 4)
        assert len(ids) == 1
        assert own.n_bits == 40


def test_other_models_beside_the_current_one(folder, tmp_path, start, digits):
    other = ilhash.ILH(n_bits=16, n_similar=30, n_dissimilar=30, random_state=7).fit(*digits)
    other.save(tmp_path / "other")
    X = digits[0]
    index = ilhash.HammingIndex(other.transform(X.astype(np.float32)), n_bits=16)
    with ilhash.Client(start(folder, others={"other": str(tmp_path / "other")}).address) as client:
        assert client.info()["models"] == ["current", "other"]
        found = client.search_vectors(X[:4], 5, model="other")
        assert found.ids == index.search(other.transform(X[:4]), k=5).ids.tolist()
        few = client.search_ids([3], 5, model="other", n_bits=8)
        assert few.n_bits == 8
        assert client._get("/v1/precision?model=other")["n_bits"][-1] == 16
        client.add(X[:1], [5000])
        assert 5000 in client.search_ids([0], 1000, model="other").ids[0]


# ------------------------------------------------------------------------------------------------ making


def test_pictures_of_a_folder_and_elsewhere(tmp_path, start, digits, model, server, client):
    X = digits[0][:20]
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "3.png").write_bytes(client.picture(3))
    (tmp_path / "secret.txt").write_text("no")
    make(tmp_path / "a", model, X, pictures=str(tmp_path / "pictures"))
    make(tmp_path / "b", model, X, pictures="https://pictures.example/{id}.jpg")
    with ilhash.Client(start(tmp_path / "a").address) as shown:
        assert shown.picture(3) == client.picture(3)
        assert shown.item(4)["picture"] is None
    elsewhere = start(tmp_path / "b")
    with ilhash.Client(elsewhere.address) as shown:
        assert shown.item(4)["picture"] == "https://pictures.example/4.jpg"
    assert "https://pictures.example" in ask(elsewhere, "GET", "/v1/info")[1]["content-security-policy"]


def test_photographs_are_not_drawn(tmp_path, digits):
    """Pictures in colour that are their own vectors: shown, not asked for by drawings of one colour."""
    X, y = digits
    colours = np.repeat(X, 3, axis=1)
    made = ilhash.ILH(n_bits=8, n_train=300, n_similar=10, n_dissimilar=10).fit(colours, y)
    make(tmp_path / "colours", made, colours, pictures=colours.reshape(-1, 8, 8, 3))
    with Service(tmp_path / "colours") as service:
        assert service.layout.pictures.drawable
        assert service.pictures.ink is None


def test_how_lines_lie_in_pictures():
    pictures = np.zeros((3, 28, 20))
    pictures[0, 4:24, 8:11] = 1  # a line
    pictures[1, 4:24, 3:17] = 1  # a ring
    pictures[1, 7:21, 6:14] = 0
    found = ink(pictures)
    assert (found["height"], found["width"]) == (20, 20)
    assert 2.5 < found["pen"] < 4
    assert ink(pictures[2:]) is None
    flat = np.zeros((1, 8, 8))
    flat[0, 4] = 1
    assert ink(flat) == {"height": 1, "width": 8, "pen": 0.5}


def test_a_folder_is_made_wholly_or_not_at_all(tmp_path, digits, model):
    X = digits[0][:20]
    for wrong, sentence in [
        ({"X": X, "codes": model.transform(X)}, "one of X and codes must be given, got both"),
        ({}, "one of X and codes must be given, got none"),
        ({"X": X, "labels": [1]}, "labels must be one per item"),
        ({"X": X, "ids": [1] * 20}, "ids must be distinct"),
        ({"X": X, "pictures": np.zeros((3, 2, 2))}, "pictures must be arrays"),
        ({"X": X, "pictures": "https://x/none"}, "pictures must be a URL with"),
        ({"X": np.full((20, 64), np.nan)}, "must be finite"),
        ({"codes": model.transform(X), "margins": True}, "margins must be kept by an index of ours"),
        ({"X": X, "engine": "postgresql://me:secret@host/base"}, "engine must be a URL without a password"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            make(tmp_path / "s", model, **wrong)
        assert list(tmp_path.iterdir()) == []
    make(tmp_path / "s", model, X)
    with pytest.raises(ValueError, match="must be a new folder"):
        make(tmp_path / "s", model, X)


ENGINES = {"sqlite": "sqlite_vec", "duckdb": "duckdb", "lance": "lancedb", "clickhouse": "chdb", "faiss": "faiss"}
ENGINES |= {"usearch": "usearch", "folder": "ilhash"}


@pytest.mark.parametrize("scheme", ENGINES)
def test_engines(tmp_path, start, digits, model, scheme):
    if importlib.util.find_spec(ENGINES[scheme]) is None:
        pytest.skip(f"{ENGINES[scheme]} is not installed")
    X, y = digits
    url = f"{scheme}:///{tmp_path}/items.{scheme}"
    check_engine(tmp_path, start, X[:300], y[:300], model, url)


def check_engine(tmp_path, start, X, y, model, url):
    make(tmp_path / "service", model, X, labels=y, engine=url)
    index = ilhash.HammingIndex(model.transform(X), n_bits=32)
    running = start(tmp_path / "service")
    with ilhash.Client(running.address) as client:
        assert client.search_vectors(X[:4], 5).ids == index.search(model.transform(X[:4]), k=5).ids.tolist()
        weighed = index.search_asymmetric(model.decision_function(X[:4]), k=5)
        assert client.search_vectors(X[:4], 5, order="asymmetric").ids == weighed.ids.tolist()
        few = ilhash.HammingIndex(model[:9].transform(X), n_bits=9).search(model[:9].transform(X[:4]), k=5)
        assert client.search_vectors(X[:4], 5, n_bits=9).ids == few.ids.tolist()
        assert client.add(X[:2] + 1, labels=[0, 1]) == [300, 301]
        client.update(X[5:6], [300])
        client.remove([301])
        assert client.item(300)["code"] == client.item(5)["code"]
        judged = [(one, other) for one in range(40) for other in range(40, 46)]
        body = [{"query": a, "item": b, "similar": bool((y[a] < 5) == (y[b] < 5))} for a, b in judged]
        client._post("/v1/judgements", {"judgements": body})
        learnt = client.learn(8)
        assert learnt.state in ("done", "unchanged")
        n_bits = 32 + learnt.n_new
        assert client.n_bits == n_bits
        before = client.search_vectors(X[:4], 5)
        assert len(client) == 301
    running.stop()
    with ilhash.Client(start(tmp_path / "service").address) as client:
        assert client.search_vectors(X[:4], 5) == before
        assert client.n_bits == n_bits


def test_a_copy_of_a_folder_serves_the_same(folder, tmp_path, digits):
    shutil.copytree(folder, tmp_path / "copy")
    X = digits[0].astype(np.float32)
    with Service(folder) as one, Service(tmp_path / "copy") as other:
        asked = [Asked(vectors=X[:5])]
        assert one.search(asked) == other.search(asked)


def test_a_second_server_over_an_engine_follows(tmp_path, start, digits, model):
    X, y = digits[0][:100], digits[1][:100]
    make(tmp_path / "service", model, X, labels=y, engine=f"sqlite:///{tmp_path}/items.db")
    writer, reader = start(tmp_path / "service"), start(tmp_path / "service")
    with ilhash.Client(writer.address) as first, ilhash.Client(reader.address) as second:
        assert (first.info()["writable"], second.info()["writable"]) == (True, False)
        first.add(X[:1] + 1, [4000], labels=[7])
        wait_until(lambda: 4000 in second and second.item(4000)["label"] == 7)
    writer.stop()
    with Service(tmp_path / "service") as service:
        service.adopt(model[:].extend(8, *digits), 8)
    with ilhash.Client(reader.address) as second:
        wait_until(lambda: second.n_bits == 40)
        assert len(second.search_vectors(X[:3], 4)) == 3


def test_the_document_knows_the_service(client):
    document = client._get("/openapi.json")
    schemas = document["components"]["schemas"]
    assert schemas["Search"]["properties"]["k"]["maximum"] == 1000
    assert schemas["Encode"]["properties"]["vectors"]["items"]["maxItems"] == 64
    assert client._post("/v1/encode", schemas["Encode"]["examples"][0])["n_bits"] == 32
    assert "securitySchemes" not in document["components"]
