import pytest
from tests.engines.contract import EngineContract

from ilhash import engines


class TestFolder(EngineContract):
    scheme = "folder"

    def test_a_folder_that_is_not_ours(self, url, tmp_path):
        (tmp_path / "place").mkdir()
        (tmp_path / "place" / "notes.txt").write_text("mine")
        for settings, sentence in (({}, "must be a directory of a store"), ({"n_bits": 8}, "new or empty folder")):
            with pytest.raises((OSError, ValueError), match=sentence) as error:
                engines.open(url, **settings)
            assert "\n" not in str(error.value)
        assert [path.name for path in (tmp_path / "place").iterdir()] == ["notes.txt"]
