"""``ilhash methods``."""

import ilhash


def test_methods_are_listed(ilhash_command):
    out = ilhash_command("methods").out
    assert all(name in out for name in ("ILH", *ilhash.methods.available()))
