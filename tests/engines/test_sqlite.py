from tests.engines.contract import EngineContract


class TestSqlite(EngineContract):
    scheme = "sqlite"
