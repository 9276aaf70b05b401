"""``ilhash demo``."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

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


def test_demo_serves_the_digits_and_goes_on_with_what_was_taught(tmp_path):
    for needed in ("fastapi", "uvicorn", "prometheus_client"):
        pytest.importorskip(needed, reason="the extra serve is not installed")
    command = [
        sys.executable,
        "-m",
        "ilhash",
        "demo",
        "--serve",
        "--port",
        "0",
        "--bytes",
        "4",
        "-o",
        str(tmp_path / "a/b"),
    ]
    given = {"judgements": [{"query": 3, "item": 13, "similar": True}]}
    for judged in (0, 1):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        with process.stdout:
            said = iter(process.stdout)
            address = next(line for line in said if "serving on" in line).split()[-1]
            with urllib.request.urlopen(f"{address}/v1/info") as response:
                info = json.load(response)
            assert info["index"]["items"] == 1_797
            assert info["items"]["pictures"]["ink"]  # they can be drawn
            assert info["feedback"]["judgements"] == judged
            with urllib.request.urlopen(f"{address}/") as response:
                assert b"<title>ilhash</title>" in response.read()
            body = json.dumps(given).encode()
            sent = urllib.request.Request(f"{address}/v1/judgements", body, {"Content-Type": "application/json"})
            urllib.request.urlopen(sent).close()
            process.send_signal(signal.SIGTERM)
            list(said)
        assert process.wait(timeout=60) == 0
