"""What all commands share: help, how they end, and that they begin at once."""

import subprocess
import sys

import numpy as np
import pytest
import typer

import ilhash
from ilhash.cli._app import app


def commands(group=None, path=()):
    """All commands, as (words that are typed, the command)."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


def test_there_is_a_file_for_every_command():
    names = {path[0] for path in COMMANDS}
    assert names == {module for module in vars(ilhash.cli) if module in names} > {"fit", "data", "reproduce"}
    assert all(f"ilhash.cli.{name}" in sys.modules for name in names)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_names_every_option_with_a_text(path, ilhash_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 250)
    out = ilhash_command(*path, "--help").out
    assert "Usage" in out
    for parameter in COMMANDS[path].params:
        assert parameter.help, f"{parameter.name} must have a help text"
        assert max(parameter.opts, key=len) in out
        assert " ".join(parameter.help.split()) in out


def test_workers_and_threads_are_spelled_the_same_everywhere():
    names = {"n_jobs": ["--n-jobs", "-j"], "n_threads": ["--n-threads", "-j"]}
    found = [parameter for command in COMMANDS.values() for parameter in command.params]
    assert not [p.opts for p in found if {"--jobs", "--threads"} & set(p.opts)]
    assert all(p.opts == names[p.name] for p in found if p.name in names)
    assert {"-j"} & {option for p in found if p.name not in names for option in p.opts} == set()


def test_version(ilhash_command):
    assert ilhash.__version__ in ilhash_command("--version").out


def test_the_command_line_begins_at_once():
    heavy = ("sklearn", "scipy", "matplotlib", "joblib", "ilhash.ensemble", "ilhash.experiments", "ilhash.search")
    script = f"import sys, ilhash.cli; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "[]"


# ------------------------------------------------------------------------------------------------ errors


def raise_(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("error", [TypeError("'int' object is not iterable"), KeyError("x"), AssertionError()])
def test_a_bug_says_so_and_how_to_see_more(ilhash_command, monkeypatch, error):
    monkeypatch.setattr("ilhash.models.load", raise_(error))
    said = ilhash_command("info", "m", code=1)
    assert said.err.startswith("error: this is a bug in ilhash")
    assert f"{type(error).__name__}: " in said.err
    assert "ilhash --traceback" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("error", [ValueError("n"), TypeError("X must be a, got b"), OSError("disk"), ImportError("i")])
def test_what_a_person_can_mend_is_no_bug(ilhash_command, monkeypatch, error):
    monkeypatch.setattr("ilhash.models.load", raise_(error))
    assert ilhash_command("info", "m", code=2).err == f"error: {error}\n"


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.parametrize(("error", "code"), [(KeyError("x"), 1), (ValueError("bad"), 2)])
def test_the_traceback_is_shown_on_demand(ilhash_command, monkeypatch, by, error, code):
    monkeypatch.setattr("ilhash.models.load", raise_(error))
    if by == "environment":
        monkeypatch.setenv("ILHASH_TRACEBACK", "1")
    said = ilhash_command(*(["--traceback"] if by == "option" else []), "info", "m", code=code)
    assert "Traceback (most recent call last)" in said.err
    assert "in info" in said.err
    assert said.err.splitlines()[-1].startswith("error: ")


# ------------------------------------------------------------------------------------------------ Ctrl-C


def interrupt(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_says_that_nothing_was_written(files, ilhash_command, monkeypatch):
    monkeypatch.setattr("ilhash.ILH._check_parameters", interrupt)
    fit = ("fit", files / "X.npy", "--labels", files / "y.npy", "-o", files / "m")
    assert ilhash_command(*fit, code=130).err == "interrupted; nothing was written\n"
    # Nothing of a checkpoint that was not begun.
    assert ilhash_command(*fit, "--checkpoint", files / "no", code=130).err == "interrupted; nothing was written\n"


def after(n):
    """A progress that Ctrl-C ends after n steps."""

    class Bar:
        def __enter__(self):
            return lambda done, total: interrupt() if done >= n else None

        def __exit__(self, *_):
            pass

    return lambda *_: Bar()


def test_ctrl_c_says_where_finished_bits_are(files, ilhash_command, monkeypatch):
    fit = ("fit", files / "X.npy", "--labels", files / "y.npy", "--bits", 4, "--n-similar", 10, "-o", files / "model")
    fit += ("--checkpoint", files / "bits")
    with monkeypatch.context() as patch:
        patch.setattr(ilhash.cli.fit, "progress", after(2))
        said = ilhash_command(*fit, code=130).err
    assert said.endswith(
        f"interrupted; finished bits are in {files / 'bits'}, and the same command goes on from there\n"
    )
    assert len(list((files / "bits").glob("bit-*"))) == 2
    assert not (files / "model").exists()
    ilhash_command(*fit)
    assert len(ilhash.load(files / "model").functions_) == 4


def test_ctrl_c_says_where_finished_shards_are(files, digits, ilhash_command, monkeypatch):
    ilhash.methods.Sign().fit(digits[0]).save(files / "sign")
    encode = ("encode", files / "sign", files / "X.npy", "-o", files / "codes", "--rows-per-shard", 500)
    with monkeypatch.context() as patch:
        patch.setattr(ilhash.cli.encode, "progress", after(501))
        said = ilhash_command(*encode, code=130).err
    assert said == f"interrupted; finished shards are in {files / 'codes'}, and the same command goes on from there\n"
    ilhash_command(*encode)
    assert np.array_equal(ilhash.open_codes(files / "codes").read(), ilhash.load(files / "sign").transform(digits[0]))


def test_ctrl_c_as_a_person_presses_it(tmp_path):
    """A process that waits in a command ends with a sentence, not with a traceback."""
    script = """
import os, signal, sys
import ilhash.cli.info
ilhash.load = lambda path: os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["ilhash", "info", "m"]
ilhash.cli.main()
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "interrupted; nothing was written\n")
