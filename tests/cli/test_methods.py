"""``ilhash methods``."""

import ilhash


def test_methods_are_listed(ilhash_command):
    out = ilhash_command("methods").out
    assert all(name in out for name in ("ILH", *ilhash.methods.available()))
    assert "50,000" in out  # ITQ's n_train="auto"
    assert "ILH alone also takes --pairs and --affinity" in out
