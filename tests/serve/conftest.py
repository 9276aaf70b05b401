"""Services of the digits, and real servers on them."""

import shutil

import pytest
from tests.serve.forks import Forks

import ilhash
from ilhash.serve import make


@pytest.fixture(scope="session")
def model(digits):
    return ilhash.ILH(n_bits=32, n_similar=30, n_dissimilar=30).fit(*digits)


@pytest.fixture(scope="session")
def original(tmp_path_factory, digits, model):
    """The folder of a service of digits, of which tests take copies."""
    folder = tmp_path_factory.mktemp("services") / "digits"
    X, y = digits
    make(folder, model, X, labels=y, pictures=X.reshape(-1, 8, 8), margins=True)
    return folder


@pytest.fixture
def folder(tmp_path, original):
    shutil.copytree(original, tmp_path / "service")
    return tmp_path / "service"


@pytest.fixture(scope="session")
def forks():
    started = Forks()
    yield started
    started.close()


@pytest.fixture
def start(forks):
    """Start servers, which end with the test."""
    servers = []

    def begin(folder, **options):
        servers.append(forks.start(folder, **options))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(forks, original):
    """A server of the digits, for tests that change nothing."""
    started = forks.start(original)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def client(server):
    with ilhash.Client(server.address) as connected:
        yield connected
