"""``ilhash data``."""

import numpy as np


def test_datasets_are_listed(ilhash_command):
    out = ilhash_command("data", "list").out
    assert all(name in out for name in ("digits", "mnist", "cifar10-gist", "endless", "ILHASH_DATA"))


def test_a_slice_is_made_the_same_by_any_number_of_threads(tmp_path, ilhash_command):
    for n_threads in (1, 2):
        made = ("data", "make", "infinite-digits", "--n", 40, "--source", "digits", "--n-threads", n_threads)
        assert "made 40 images of 8 x 8 pixels" in ilhash_command(*made, "-o", tmp_path / str(n_threads)).out
    assert np.array_equal(*(np.load(tmp_path / folder / "X.npy") for folder in ("1", "2")))
    refused = ilhash_command("data", "make", "letters", "--n", 1, "-o", tmp_path / "new", code=2)
    assert "must be infinite-digits, got 'letters'" in refused.err
