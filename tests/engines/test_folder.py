from tests.engines.contract import EngineContract


class TestFolder(EngineContract):
    scheme = "folder"
