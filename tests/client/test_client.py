"""What a client does with services that are busy, broken or gone: real sockets that answer by a script."""

import http.server
import json
import socketserver
import threading
import time

import numpy as np
import pytest

from ilhash.client import Client, ServiceError


@pytest.fixture
def scripted():
    """Serve answers one after the other, and keep what was asked."""
    servers = []

    def begin(answers):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path, body, dict(self.headers), time.monotonic()))
                status, headers, document = answers[min(len(asked), len(answers)) - 1]
                if status == 0:
                    self.close_connection = True
                    return
                data = json.dumps(document).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = answer  # noqa: N815 (names of the base)

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        server = Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", asked

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


FOUND = {"hits": [{"ids": [1], "distances": [0]}], "exact": True, "order": "hamming", "n_bits": 8, "model": "current"}
OK = (200, {}, FOUND)
BROKEN = (0, {}, None)


def busy(status, seconds="0"):
    return status, {"Retry-After": seconds}, {"detail": "too many, got more"}


def test_a_busy_service_is_asked_again(scripted):
    url, asked = scripted([busy(503), busy(429), OK])
    with Client(url) as client:
        assert client.search_ids([1]).ids == [[1]]
    assert len(asked) == 3


def test_it_waits_as_long_as_it_is_told(scripted):
    url, asked = scripted([busy(429, "1"), OK])
    with Client(url) as client:
        client.search_ids([1])
    assert 1.0 <= asked[1][4] - asked[0][4] < 5.0


def test_it_gives_up_after_so_many_times(scripted):
    url, asked = scripted([busy(503)])
    with Client(url, retries=2) as client, pytest.raises(ServiceError, match="too many, got more") as refused:
        client.search_ids([1])
    assert (len(asked), refused.value.status, refused.value.retry_after) == (3, 503, 0.0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_what_is_refused_is_not_asked_again(scripted, status):
    url, asked = scripted([(status, {}, {"detail": "no, got this"})])
    with Client(url) as client, pytest.raises(ServiceError, match="no, got this") as refused:
        client.search_ids([1])
    assert (len(asked), refused.value.status) == (1, status)


def test_a_connection_that_breaks(scripted):
    """A search is asked again; an addition may have happened and is not."""
    url, asked = scripted([BROKEN, OK])
    with Client(url) as client:
        assert client.search_ids([1]).ids == [[1]]
    assert len(asked) == 2
    url, asked = scripted([BROKEN, (201, {}, {"ids": [1]})])
    with Client(url) as client, pytest.raises(ServiceError) as broken:
        client.add([[1.0]])
    assert (len(asked), broken.value.status) == (1, 0)


def test_an_addition_of_which_nobody_knows_is_not_made_twice(scripted):
    url, asked = scripted([(503, {}, {"detail": "the disk is full, got an error"})])
    with Client(url) as client, pytest.raises(ServiceError, match="the disk is full"):
        client.add([[1.0]])
    assert len(asked) == 1


def test_nobody_there():
    with socketserver.TCPServer(("127.0.0.1", 0), None) as closed:
        port = closed.server_address[1]
    with Client(f"http://127.0.0.1:{port}", retries=1) as client, pytest.raises(ServiceError, match="must answer, got"):
        client.info()


def test_one_connection_for_each_thread_is_kept(scripted):
    url, asked = scripted([OK])
    with Client(url, token="secret-token") as client:
        threads = [threading.Thread(target=lambda: [client.search_ids([1]) for _ in range(5)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(client._connection._all) == 3
    assert len(asked) == 15
    assert all(one[3]["Authorization"] == "Bearer secret-token" for one in asked)


def test_arrays_become_lists(scripted):
    url, asked = scripted([OK])
    with Client(url) as client:
        client.search_vectors(np.ones((2, 3), np.float32), 3, order="asymmetric", n_bits=4)
        client.search(np.array([[1, 255]], np.uint8), 3)
        client.search(["01ff"], 3, model="other")
    bodies = [json.loads(one[2]) for one in asked]
    assert bodies[0] == {"vectors": [[1.0] * 3] * 2, "order": "asymmetric", "k": 3, "n_bits": 4}
    assert bodies[1] == {"codes": ["01ff"], "k": 3}
    assert bodies[2] == {"codes": ["01ff"], "k": 3, "model": "other"}


@pytest.mark.parametrize("url", ["x", "ftp://x", "http://", "http://me:secret@host", "http://host/?q", "http://[::1"])
def test_addresses_that_are_none(url):
    with pytest.raises(ValueError, match=r"url must be|Invalid IPv6"):
        Client(url)


def test_tokens_that_are_none():
    for token in ("a b", "é", "a\r\nX: y", "\0"):
        with pytest.raises(ValueError, match="token must be printable"):
            Client("http://localhost", token=token)


def test_values_that_json_does_not_know():
    with Client("http://127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="JSON"):
            client.search_vectors([[float("nan")]])
        with pytest.raises(TypeError, match="options must be n_bits, model or radius"):
            client.search_ids([1], bits=3)
        with pytest.raises(ValueError, match="one of X and codes must be given"):
            client.add()
