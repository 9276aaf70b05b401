"""What a container is built from and how it runs, as far as the files say: no engine is needed."""

import fnmatch
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ilhash.cli import serve

ROOT = Path(__file__).parents[2]
if not (ROOT / "Dockerfile").is_file():
    pytest.skip("these are files of the repository", allow_module_level=True)
PINNED = r"[a-z0-9./-]+:[A-Za-z0-9._-]*\d+\.\d+[A-Za-z0-9._-]*(@sha256:[0-9a-f]{64})?"
SECRET = re.compile(r"password|token|secret|key", re.IGNORECASE)


def instructions():
    """Instructions of the Dockerfile, with their arguments, in one line each."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1].strip()) for line in lines if line.strip()]


STAGES = [at for at, (name, _) in enumerate(instructions()) if name == "FROM"]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_bases_are_pinned_and_the_same():
    bases = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(PINNED, bases[0])
    assert re.fullmatch(PINNED, COMPOSE["services"]["postgres"]["image"])


def test_it_runs_as_a_user_with_a_number_and_ends_properly():
    last = instructions()[STAGES[-1] :]
    (user,) = [arguments for name, arguments in last if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert COMPOSE["services"]["ilhash"]["user"] == user
    after = [name for name, _ in last[[name for name, _ in last].index("USER") :]]
    assert not {"RUN", "COPY", "ADD"} & set(after)
    assert ("STOPSIGNAL", "SIGTERM") in last
    (health,) = [arguments for name, arguments in last if name == "HEALTHCHECK"]
    assert "/readyz" in health
    assert isinstance(json.loads(health[health.index("CMD") + 3 :]), list)


def test_the_last_stage_takes_only_what_was_built():
    copied = [arguments for name, arguments in instructions()[STAGES[-1] :] if name in ("COPY", "ADD")]
    assert all("--from=build" in one or one.split()[-2] == "tools/container-entrypoint" for one in copied)
    assert "ADD" not in {name for name, _ in instructions()}


def test_whatever_is_installed_is_checked_by_hash():
    for name, arguments in instructions():
        for command in arguments.split("&&") if name == "RUN" else ():
            if re.search(r"pip install", command):
                assert "--require-hashes" in command or "--no-deps" in command, command
            if re.search(r"pip wheel", command):
                assert "--no-deps" in command, command
                assert "--no-build-isolation" in command, command


def test_there_are_no_secrets_in_files_or_the_environment():
    for name, arguments in instructions():
        if name in ("ENV", "ARG"):
            assert not SECRET.search(arguments), arguments
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not SECRET.search(name) or (name.endswith("_FILE") and value.startswith("/run/secrets/")), name
        assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_service_can_write_to_its_folder_alone_and_is_reached_from_this_machine():
    ours = COMPOSE["services"]["ilhash"]
    assert ours["read_only"] is True
    assert ours["volumes"] == ["service:/data"]
    assert ours["cap_drop"] == ["ALL"]
    for service in COMPOSE["services"].values():
        assert "no-new-privileges:true" in service["security_opt"]
        assert not service.get("privileged")
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert "ports" not in COMPOSE["services"]["postgres"]
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_the_commands_are_commands_of_ours():
    known = {one.replace("_", "-") for one in serve.serve.__annotations__}
    (command,) = [json.loads(arguments) for name, arguments in instructions() if name == "CMD"]
    for given in (command, COMPOSE["services"]["ilhash"]["command"]):
        assert given[:2] == ["serve", "/data/service"]
        options = {one.removeprefix("--").split("=")[0] for one in given if one.startswith("--")}
        assert options <= known


def test_the_build_gets_what_it_copies_and_nothing_else():
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    given = [line[1:] for line in lines if line[0] == "!"]
    copied = [
        one
        for name, arguments in instructions()
        if name == "COPY" and "--from" not in arguments
        for one in arguments.split()[:-1]
        if not one.startswith("--")
    ]
    assert sorted(copied) == sorted(given)
    for one in given:
        assert (ROOT / one).exists(), one
        assert not fnmatch.fnmatch(one, "*secret*")


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    said = subprocess.run(["hadolint", ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_the_entry_hands_a_password_to_its_process_alone(tmp_path):
    (tmp_path / "ilhash").write_text('#!/bin/sh\nprintf "%s|%s" "$PGPASSWORD" "$*"\n')
    (tmp_path / "ilhash").chmod(0o755)
    (tmp_path / "password").write_text("pass word\n")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PGPASSWORD_FILE": str(tmp_path / "password")}
    entry = ROOT / "tools" / "container-entrypoint"
    done = subprocess.run(["sh", entry, "serve", "a b"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "pass word|serve a b"
    environment["PGPASSWORD_FILE"] = str(tmp_path / "missing")
    assert subprocess.run(["sh", entry, "serve"], env=environment, capture_output=True, check=False).returncode != 0
