"""The same service over PostgreSQL, a real server of it."""

from tests.engines.test_postgres import server, url  # noqa: F401 (fixtures; this server is PostgreSQL)
from tests.serve.test_service import check_engine


def test_postgresql(tmp_path, start, digits, model, request):
    X, y = digits
    check_engine(tmp_path, start, X[:300], y[:300], model, request.getfixturevalue("url"))
