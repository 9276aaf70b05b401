"""Whoever sends what: no more than the limits, nothing without a token, no error of the server, no growth."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from tests.serve.test_service import ask, problem

import ilhash
from ilhash.client import ServiceError
from ilhash.serve import Service, Tokens, run

READ, WRITE = "r" * 20, "w" * 20


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# who may what\nread {READ}\nwrite {WRITE}\n")
    path.chmod(0o600)
    return str(path)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def raw(server, data, *more, pause=0.2, seconds=60):
    """Send bytes, and more of them after a while; return all that comes back until the connection ends."""
    with socket.create_connection((server.host, server.port), timeout=seconds) as connection:
        out = b""
        with contextlib.suppress(ConnectionError):  # what was answered before the end can be read all the same
            connection.sendall(data)
            for part in more:
                time.sleep(pause)
                connection.sendall(part)
        try:
            while chunk := connection.recv(1 << 16):
                out += chunk
        except (ConnectionError, TimeoutError):
            pass
        return out


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


# ------------------------------------------------------------------------------------------------ who may come


def test_tokens(folder, start, tokens, digits):
    server = start(folder, tokens=tokens)
    for path in ("/v1/info", "/v1/items/3", "/v1/pictures/3", "/metrics", "/v1/learning/events", "/v1/nothing"):
        for shown in ({}, bearer("x" * 20), bearer(READ[:-1]), {"Authorization": f"Basic {READ}"}, bearer("é")):
            status, headers, _ = ask(server, "GET", path, headers={k: v.encode() for k, v in shown.items()})
            assert status == 401
            assert headers["www-authenticate"] == "Bearer"
    for path in ("/livez", "/readyz", "/", "/openapi.json"):
        assert ask(server, "GET", path)[0] in (200, 404)  # a page that is not there yet
    with ilhash.Client(server.address, token=READ) as reader, ilhash.Client(server.address, token=WRITE) as writer:
        assert reader.search_ids([3], 2) == writer.search_ids([3], 2)
        assert reader.encode(digits[0][:1])
        assert reader.look([3])
        for wrong in (
            lambda: reader.add(digits[0][:1]),
            lambda: reader.update(digits[0][:1], [3]),
            lambda: reader.remove([3]),
            lambda: reader.judge(1, 2),
            lambda: reader.learn(),
        ):
            with pytest.raises(ServiceError, match="the token must be one for writing") as refused:
                wrong()
            assert refused.value.status == 403
        writer.judge(1, 2)
        assert reader.judgements()["judgements"] == 1


def test_tokens_are_read_from_a_file_that_is_private_or_the_environment(tmp_path):
    path = tmp_path / "tokens"
    for content, sentence in [
        ("read short\n", "tokens must have at least 16 characters"),
        (f"{READ}\n", "line 1, must be 'read TOKEN' or 'write TOKEN'"),
        (f"read {READ}\nadmin {READ}", "line 2, must be"),
    ]:
        path.write_text(content)
        path.chmod(0o600)
        with pytest.raises(ValueError, match=sentence):
            Tokens.found(path, {})
    path.write_text(f"read {READ}\n")
    path.chmod(0o604)
    if os.name == "posix":
        with pytest.raises(ValueError, match="that others cannot read"):
            Tokens.found(path, {})
    path.chmod(0o600)
    known = Tokens.found(path, {"ILHASH_WRITE_TOKEN": f"{WRITE} {'v' * 16}"})
    shown = [known.may(f"Bearer {one}") for one in (READ, WRITE, "v" * 16, "", "x")]
    assert shown == ["read", "write", "write", None, None]
    assert not Tokens.found(None, {})


def test_others_than_this_machine_need_tokens(folder):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="host must be the loopback address where there are no tokens"):
            run(Service(folder), host=host)


def test_names_of_others_that_lead_here_are_refused(server, folder, start):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1", "a, localhost"):
        assert problem(ask(server, "GET", "/v1/info", headers={"Host": host}))[0] == 421
    for host in ("localhost", f"127.0.0.1:{server.port}", "LOCALHOST:1", "[::1]:99"):
        assert ask(server, "GET", "/v1/info", headers={"Host": host})[0] == 200
    named = start(folder, hosts=["search.example"])
    assert ask(named, "GET", "/v1/info", headers={"Host": "search.example:8000"})[0] == 200


def test_pages_of_others_may_neither_read_nor_write(server, folder, start):
    search = {"ids": [1], "k": 1}
    for origin in ("https://evil.example", "null", "http://localhost", f"http://localhost:{server.port}.evil.example"):
        assert problem(ask(server, "POST", "/v1/search", search, {"Origin": origin}))[0] == 403
        asked = ask(
            server, "OPTIONS", "/v1/search", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
        )
        assert "access-control-allow-origin" not in asked[1]
    own = {"Origin": f"http://localhost:{server.port}", "Host": f"localhost:{server.port}"}
    assert ask(server, "POST", "/v1/search", search, own)[0] == 200
    assert (
        "access-control-allow-origin" not in ask(server, "GET", "/v1/info", headers={"Origin": "https://a.example"})[1]
    )
    text = json.dumps(search).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert problem(ask(server, "POST", "/v1/search", text, {"Content-Type": kind}))[0] == 415
    friendly = start(folder, origins=["https://app.example"])
    told = ask(friendly, "POST", "/v1/search", search, {"Origin": "https://app.example"})
    assert (told[0], told[1]["access-control-allow-origin"]) == (200, "https://app.example")
    assert ask(friendly, "POST", "/v1/search", search, {"Origin": "https://other.example"})[0] == 403


def test_headers_of_all_answers(server):
    for path in ("/", "/livez", "/v1/info", "/v1/pictures/3", "/nothing", "/static/../x", "/openapi.json", "/metrics"):
        headers = ask(server, "GET", path)[1]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "server" not in headers


PATHS = ["../service.json", "..%2fservice.json", "%2e%2e/x", "..%5cx", "/etc/passwd", "%2fetc%2fpasswd", "a%00b"]
PATHS += ["secret", "secret.png", "....//x", "%ff", "%c0%ae%c0%ae/x", "C:%5cx", "x" * 3000, "%25%32%65"]


def test_no_path_of_a_request_reaches_the_disk(server, original):
    (original / "items" / "secret.png").write_bytes(b"CONTENT")
    for what in PATHS:
        for begin in ("/static/", "/v1/pictures/", "/v1/items/", "/", "/v1/bits/", "/static/page/../"):
            status, _, content = ask(server, "GET", begin + what)
            assert status in (404, 422), (begin + what, status)
            assert b"CONTENT" not in content
            assert str(original).encode() not in content
    (original / "items" / "secret.png").unlink()


# ------------------------------------------------------------------------------------------------ how much


def test_bodies_that_are_too_large(folder, start):
    server = start(folder, limits={"body": 10_000})
    head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    before = server.memory()
    answered = raw(server, head + b"Content-Length: 10001\r\nConnection: close\r\n\r\n" + b"x" * 10_001)
    assert status_of(answered) == 413
    assert status_of(raw(server, head + b"Content-Length: 99999999999\r\n\r\n", seconds=2)) == 413
    chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
    endless = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2
    assert status_of(raw(server, endless, *([chunk * 40] * 100), pause=0.0, seconds=2)) == 413
    for length in (b"-1", b"1e3", b"9" * 30, b"0x10", b"5, 5", b""):
        answered = raw(server, head + b"Content-Length: " + length + b"\r\nConnection: close\r\n\r\nxxxxx", seconds=2)
        assert status_of(answered) in (400, 413, 422)
    assert ask(server, "POST", "/v1/search", {"ids": [1], "k": 1})[0] == 200
    assert server.memory() < before + (30 << 20)


def test_slow_senders(folder, start):
    server = start(folder, limits={"header_seconds": 0.5, "body_seconds": 0.5})
    began = time.monotonic()
    silent = raw(server, b"")
    slow_head = raw(server, b"GET / HT", *([b"x"] * 4), pause=0.2)
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    slow_body = raw(server, head, *([b" "] * 4), pause=0.2)
    again = raw(server, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /li")
    assert time.monotonic() - began < 20
    assert (silent, slow_head) == (b"", b"")
    assert status_of(slow_body) == 408
    assert again.count(b"200 OK") == 1


def test_vectors_per_second(folder, start, digits):
    server = start(folder, limits={"vectors_per_second": 50.0, "batch": 1000})
    with ilhash.Client(server.address, retries=0) as client:
        client.search_vectors(digits[0][:450], 1)
        with pytest.raises(ServiceError, match="vectors must be at most 50 per second") as refused:
            client.search_vectors(digits[0][:150], 1)
        assert refused.value.status == 429
        assert 1 <= refused.value.retry_after <= 3
    with ilhash.Client(server.address) as patient:
        assert len(patient.search_vectors(digits[0][:150], 1)) == 150


def test_requests_that_wait(folder, start):
    server = start(folder, limits={"waiting": 2, "body_seconds": 30.0, "streams": 1})
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
    )
    held = [socket.create_connection((server.host, server.port)) for _ in range(2)]
    for connection in held:
        connection.sendall(head)
    time.sleep(0.3)
    status, headers, _ = ask(server, "GET", "/v1/info")
    assert (status, headers["retry-after"]) == (503, "1")
    assert ask(server, "GET", "/livez")[0] == 200
    assert ask(server, "GET", "/metrics")[0] == 200
    for connection in held:
        connection.sendall(b'{"ids": [1], "k": 1}')
        assert b" 200 OK" in connection.recv(1000)
        connection.close()
    assert ask(server, "GET", "/v1/info")[0] == 200


def test_bytes_of_all_bodies(folder, start):
    server = start(folder, limits={"body": 1 << 20, "bodies": 3 << 20, "body_seconds": 30.0})
    head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    held = [socket.create_connection((server.host, server.port)) for _ in range(4)]
    chunk = b"%x\r\n" % (900 << 10) + b" " * (900 << 10) + b"\r\n"
    for connection in held:
        connection.sendall(head + chunk)
        time.sleep(0.1)
    assert b" 503 " in held[3].recv(1000)
    for connection in held:
        connection.close()


def test_connections(folder, start):
    server = start(folder, limits={"connections": 5})
    held = [socket.create_connection((server.host, server.port)) for _ in range(5)]
    time.sleep(0.2)
    assert raw(server, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", seconds=2) == b""
    for connection in held:
        connection.close()
    time.sleep(0.2)
    assert ask(server, "GET", "/livez")[0] == 200


def test_a_request_that_takes_too_long(folder, start, digits):
    server = start(folder, limits={"request_seconds": 0.0001})
    assert ask(server, "GET", "/v1/precision")[0] == 504


# ------------------------------------------------------------------------------------------------ malformed


MALFORMED = [
    b"", b"\r\n\r\n", b"\0" * 100, b"GET", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 20,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000 + b"\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://evil.example/v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n",
]  # fmt: skip


def test_what_is_no_request(folder, start):
    server = start(folder, limits={"header_seconds": 0.3, "body_seconds": 0.3})
    for data in MALFORMED:
        answered = raw(server, data, seconds=1.0)
        assert answered == b"" or 200 <= status_of(answered) < 500, data[:80]
    assert ask(server, "GET", "/livez")[0] == 200


BODIES = [
    b"", b"null", b"[]", b"1", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 20_000, b"1" * 10_000, b"{}" * 5,
    b'{"ids": "x"}', b'{"ids": []}', b'{"ids": [[1]]}', b'{"ids": [1, "x"]}', b'{"ids": [true]}', b'{"ids": [1.5]}',
    b'{"ids": [1e400]}', b'{"ids": [' + b"9" * 5000 + b"]}", b'{"ids": ["\\ud800"]}', b'{"ids": ["\\u0000"]}',
    b'{"ids": [9223372036854775808]}', b'{"ids": [-9223372036854775809]}', b'{"ids": [9223372036854775807]}',
    b'{"ids": [1], "k": 1e3}', b'{"ids": [1], "k": -1}', b'{"ids": [1], "k": 99999999999999999999}',
    b'{"ids": [1], "n_bits": 0}', b'{"ids": [1], "n_bits": 99999999999999999999999}', b'{"ids": [1], "order": 3}',
    b'{"ids": [1], "model": "\\ud800"}', b'{"ids": [1], "model": "../x"}', b'{"ids": [1], "more": 1}',
    b'{"vectors": [[]]}', b'{"vectors": [[1], [1, 2]]}', b'{"vectors": [["1"]]}', b'{"vectors": {"0": 1}}',
    b'{"vectors": [[' + b",".join([b'"x"'] * 200_000) + b"]]}", b'{"codes": ["0"]}', b'{"codes": ["zz"]}',
    b'{"codes": [""]}', b'{"codes": ["00000000", "00"]}', b'{"codes": [1]}', b'{"judgements": []}',
    b'{"judgements": [{"query": 1, "item": 1, "similar": true}]}', b'{"judgements": [' + b"{}," * 100_000 + b"{}]}",
    b'{"judgements": [{"query": 1, "item": 2, "similar": 1}]}',
    b'{"judgements": [{"query": 1, "item": 2, "similar": true, "weight": 1e-400}]}',
    b'{"judgements": [{"query": 1, "item": 2, "similar": true, "weight": NaN}]}',
    b'{"judgements": [{"query": 1, "item": "x", "similar": true}]}',
    b'{"judgements": [{"query": 1, "item": 2, "similar": true, "person": "\\ud800"}]}',
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/search", "/v1/encode", "/v1/items/look", "/v1/items/remove", "/v1/judgements"])
def test_bodies_that_are_none(folder, start, path):
    server = start(folder)
    for body in BODIES:
        status, headers, content = ask(server, "POST", path, body)
        assert status in (200, 400, 404, 422), (path, body[:80], status, content[:200])
        if status != 200:
            sentence = json.loads(content)["detail"]
            assert len(sentence) < 1000
            assert headers["content-type"] == "application/problem+json"
    with ilhash.Client(server.address) as client:
        assert len(client) in (1796, 1797)


def test_it_does_not_grow(folder, start, digits):
    """Errors of a hundred thousand elements, and thousands of requests, leave nothing behind."""
    server = start(folder)
    large = b'{"judgements": [' + b"{}," * 100_000 + b"{}]}", b'{"vectors": [[' + b"1," * 500_000 + b"1]]}"

    def rounds(n):
        with ilhash.Client(server.address) as client:
            for one in range(n):
                client.search_vectors(digits[0][one : one + 2], 3)
        for body in large:
            assert ask(server, "POST", "/v1/judgements", body)[0] == 422
            assert ask(server, "POST", "/v1/search", body)[0] == 422

    for _ in range(3):
        rounds(150)
    before = server.memory()
    for _ in range(4):
        rounds(150)
    assert server.memory() < before + (16 << 20)


def test_a_request_that_is_under_way_is_answered_before_the_end(folder, start):
    server = start(folder)
    body = b'{"ids": [1], "k": 1}'
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
    )
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(head + body[:5])
        time.sleep(0.2)
        server.send(15)
        time.sleep(0.5)
        assert server.alive()
        connection.sendall(body[5:])
        assert b" 200 OK" in connection.recv(1000)
    server.stop()


def test_listeners_do_not_keep_a_server_from_ending(folder, start, digits):
    server = start(folder)
    X, y = digits
    rng = np.random.default_rng(0)
    with ilhash.Client(server.address) as client:
        pairs = rng.integers(0, len(X), (600, 2))
        body = [{"query": int(a), "item": int(b), "similar": bool(y[a] % 2 == y[b] % 2)} for a, b in pairs if a != b]
        client._post("/v1/judgements", {"judgements": body})
        heard = []

        def listen():
            with contextlib.suppress(ServiceError):  # the server has gone
                heard.append(client.learn().state)

        thread = threading.Thread(target=listen)
        thread.start()
        time.sleep(0.3)
        server.stop(seconds=20)
        thread.join(20)
        assert not thread.is_alive()


# ------------------------------------------------------------------------------------------------ the OpenAPI document


def schemathesis_of(server, examples, tmp_path, *more):
    """Run schemathesis over the document of a server."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    checks += ",response_headers_conformance,negative_data_rejection,unsupported_method"
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json", "--checks", checks]
    command += ["--max-examples", str(examples), "--seed", "1", "--phases", "examples,coverage,fuzzing", "--no-color"]
    command += ["--generation-database", "none", "--suppress-health-check", "all", "--request-timeout", "60", *more]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=3600)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]
    return run.stdout


def test_the_service_is_what_its_document_says(folder, start, tmp_path):
    pytest.importorskip("schemathesis")
    server = start(folder, limits={"vectors_per_second": 0.0})
    schemathesis_of(server, 4, tmp_path)
    assert ask(server, "GET", "/livez")[0] == 200


@pytest.mark.slow
def test_ten_thousand_requests(folder, start, tmp_path):
    pytest.importorskip("schemathesis")
    server = start(folder, limits={"vectors_per_second": 0.0})
    before = server.memory()
    said = schemathesis_of(server, 700, tmp_path)
    generated = sum(int(number) for number in re.findall(r"([0-9]+) generated", said))
    assert generated >= 10_000, said[-2000:]
    with ilhash.Client(server.address) as client:
        assert client.ready()
        counts = client._connection.ask_bytes("GET", "/metrics").decode()
    assert 'status="500"' not in counts
    assert server.memory() < before + (64 << 20)


def test_an_address_names_its_methods(server):
    for path, methods in [
        ("/v1/items", "GET, POST, PUT"),
        ("/v1/items/3", "GET"),
        ("/v1/search", "POST"),
        ("/", "GET"),
    ]:
        status, headers, _ = ask(server, "DELETE", path)
        assert (status, headers["allow"]) == (405, methods)
