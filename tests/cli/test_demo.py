"""``ilhash demo``."""

from ilhash import HammingIndex, evaluation


def test_demo_draws_a_picture_and_can_be_run_again(tmp_path, ilhash_command, no_clock):
    short = ("--bytes", 2, "--minutes", 0.03)
    first, second = (ilhash_command("demo", "-o", tmp_path, *short).out for _ in range(2))
    lines = [line for line in second.splitlines() if "trained" not in line]  # but for the seconds it took
    assert lines == [line for line in first.splitlines() if "trained" not in line]
    assert "precision@10" in first
    assert evaluation.Protocol(n_queries=400, k=(10, 50, 100)).hash in first
    with HammingIndex.open(tmp_path / "index-2-bytes", writable=False) as index:
        assert len(index) == 1_397
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
