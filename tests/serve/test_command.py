"""``ilhash serve`` as a person runs it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ilhash
from ilhash import serve

ILHASH = [sys.executable, "-m", "ilhash"]


def run(*arguments, **environment):
    command = [*ILHASH, "serve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


@pytest.fixture
def files(tmp_path, digits, model):
    X, y = digits[0][:60], digits[1][:60]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "pictures.npy", X.reshape(-1, 8, 8))
    np.save(tmp_path / "codes.npy", model.transform(X))
    (tmp_path / "ids.txt").write_text("".join(f"item {i}\n" for i in range(60)))
    (tmp_path / "texts.txt").write_text("".join(f"text {i}\n" for i in range(60)))
    model.save(tmp_path / "model")
    return tmp_path


def test_a_service_is_made_and_served(files, digits):
    about = ["--ids", "ids.txt", "--labels", "y.npy", "--texts", "texts.txt", "--pictures", "pictures.npy", "--margins"]
    given = [files / one if "." in one else one for one in about]
    command = [*ILHASH, "serve", files / "service", "--model", files / "model", "--vectors", files / "X.npy", *given]
    process = subprocess.Popen([*map(str, command), "--port", "0"], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(100, process.kill)
    watchdog.start()
    try:
        said = [process.stdout.readline() for _ in range(4)]
        address = re.fullmatch(r"serving on (http://127\.0\.0\.1:[0-9]+)\n", said[1])[1]
        assert said[2].startswith("60 items, 32 bits, in ")
        assert said[3].startswith("anybody on this machine may search and change it")
        with ilhash.Client(address) as client:
            found = client.look(["item 3"])[0]
            assert (found["label"], found["text"]) == (int(digits[1][3]), "text 3")
            assert client.picture("item 3")[:4] == b"\x89PNG"
            assert client.search_ids(["item 3"], 2, order="margins").order == "margins"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == ""
    finally:
        watchdog.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
    again = run(files / "service", "--model", files / "model", "--vectors", files / "X.npy")
    assert (again.returncode, again.stderr.startswith("error: --model must be given for a new folder")) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "must be a directory of a service of ilhash with a service.json, got none"),
        (["{folder}", "--host", "0.0.0.0"], "host must be the loopback address where there are no tokens, got 0.0.0.0"),
        (["{folder}", "--also", "x"], "--also must be name=directory, got 'x'"),
        (["{folder}", "--port", "99999"], "port must be a whole number of at most 65535, got 99999"),
        (["new", "--model", "nowhere"], "must be a directory written by save"),
    ],
)
def test_what_a_person_can_mend(folder, arguments, sentence):
    said = run(*(one.format(folder=folder) for one in arguments))
    assert said.returncode == 2
    assert sentence in said.stderr
    assert said.stderr.startswith("error: ")


def test_tokens_of_the_environment_let_others_in(folder):
    said = run(folder, "--host", "192.0.2.1", ILHASH_READ_TOKEN="r" * 16)
    assert "host and port must be free to listen on, got 192.0.2.1" in said.stderr  # no address of this machine


def test_without_the_extra_one_sentence(tmp_path):
    script = "import sys; sys.modules['fastapi'] = None; sys.argv = ['ilhash', 'serve', 'x']; "
    script += "from ilhash.cli import main; main()"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (said.returncode, said.stderr.count("\n")) == (2, 1)
    assert 'ilhash serve needs fastapi, which could not be imported: pip install "ilhash[serve]"' in said.stderr
    script = script.replace("'x'", "'--help'")
    assert "Usage" in subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="curl or bash is not there")
def test_the_lines_of_the_page_work(tmp_path, start):
    """Each line that docs/serve.md begins with, asked of a service of 60 items with three numbers each."""
    page = Path(__file__).parents[2] / "docs" / "serve.md"
    if not page.is_file():
        pytest.skip("the pages are of the repository")
    asking = page.read_text(encoding="utf-8").partition("## Asking")[2].split("```")[1].strip().splitlines()
    assert asking[0].startswith("B=http://")
    X = np.random.default_rng(0).normal(size=(60, 3))
    serve.make(tmp_path / "made", ilhash.ILH(n_bits=32, n_train=40, n_similar=5, n_dissimilar=5).fit(X), X)
    options = "--silent --show-error --fail-with-body --max-time 60"
    script = ["set -euo pipefail", f'curl() {{ command curl {options} "$@"; }}']
    script += [f"B={start(tmp_path / 'made').address}", "TOKEN=none", *asking[1:]]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    assert len(asking) > 12
