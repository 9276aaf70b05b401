"""Forged input in child processes: what a target makes of it, under limits of memory and time.

A target is a module with

    forge(rng, folder)   write one forged input into an empty folder, drawn from a random.Random alone; return in words
                         what was done
    attempt(folder)      open and use it; return a word for the outcome
    ALLOWED              kinds of errors that ``attempt`` may end in
    SETTINGS             optional, a dict of what ``run`` takes, where the target needs other limits

Case i of a seed is the same input in every run. One child makes many cases; where a case kills it, another child goes
on behind that case. A failure is everything but a return and an allowed error: another error, a signal, too much time
or memory (also where it was turned into an allowed error), a process or a connection that was started, a file that was
written or removed outside of the folder.

    run("tests.fuzz.models", n=1000, seed=0, seconds=15).failures

and from the command line, where the module ends in ``main("tests.fuzz.models")``,

    python -m tests.fuzz.models --seconds 60 --seed 1
    python -m tests.fuzz.models --seed 1 --first 17 --n 1      one case again
"""

import argparse
import collections
import importlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY = 2 << 30  # bytes above what a child has when it begins
CASE_SECONDS = 10.0  # of processor time; by the clock six times that, as machines are shared
BATCH = 1000  # cases of one child
MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of files that nobody needs on a disk
CORPUS = Path(tempfile.gettempdir()) / "ilhash-fuzz"

# Events of Python's audit that no file may cause; those of the second kind only outside of the folder.
STARTS = {
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "subprocess.Popen",
    "pty.spawn",
}
STARTS |= {"socket.connect", "socket.bind", "socket.sendto", "ctypes.dlopen"}
WRITES = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree"}


@dataclass
class Failure:
    """A case that ended in what is not allowed."""

    number: int
    forged: str
    outcome: str
    kept: Path


@dataclass
class Outcome:
    """What came of all cases; counts are of outcomes by their first word."""

    tried: int = 0
    counts: collections.Counter = field(default_factory=collections.Counter)
    failures: list = field(default_factory=list)

    def __str__(self):
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.most_common())
        return f"tried {self.tried:,}, failed {len(self.failures):,} ({counts})"


def run(
    target, n=None, seed=0, seconds=None, memory=MEMORY, *, case_seconds=CASE_SECONDS, first=0, corpus=CORPUS, tell=None
):
    """Make cases until there were n, or the seconds are over; failing inputs are kept below ``corpus``.

    ``tell`` is called with the Outcome so far after each child.
    """
    end = None if seconds is None else time.monotonic() + seconds
    outcome, number, stop = Outcome(), first, None if n is None else first + n
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY_DISK) as work:
        while (stop is None or number < stop) and (end is None or time.monotonic() < end):
            count = BATCH if stop is None else min(BATCH, stop - number)
            left = 1e9 if end is None else max(0.0, end - time.monotonic())
            task = {"target": target, "seed": seed, "first": number, "count": count, "seconds": left}
            child = _Child({**task, "memory": memory, "case_seconds": case_seconds}, Path(work))
            for case, result, allowed in child.cases():
                number = case["number"] + 1
                outcome.tried += 1
                outcome.counts[result.split(":")[0]] += 1
                if not allowed:
                    kept = Path(corpus) / f"{target.rpartition('.')[2]}-{seed}-{case['number']}"
                    _keep(child.folder, kept)
                    outcome.failures.append(Failure(case["number"], case["forged"], result, kept))
            if tell is not None:
                tell(outcome)
    return outcome


class _Child:
    """A process that makes cases until they are done or one of them kills it."""

    def __init__(self, task, work):
        self.task, self.folder, self.errors = task, work / "case", work / "errors"

    def cases(self):
        """Yield case, outcome and whether it is allowed; its folder is there until the next is asked for."""
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "tests.fuzz._harness",
            json.dumps(self.task),
            self.folder,
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
        current = None
        with (
            self.errors.open("w") as errors,
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=-1, stdout=-1, stderr=errors, text=True
            ) as child,
        ):
            for line in child.stdout:
                said = json.loads(line)
                if "forged" in said:
                    current = said
                    continue
                yield current, said["outcome"], said["allowed"]
                current = None
                child.stdin.write("\n")
                child.stdin.flush()
        if current is not None:
            yield current, self._death(child.returncode), False
        elif child.returncode:
            raise RuntimeError(f"a child of {self.task} ended outside of a case: {self._death(child.returncode)}")

    def _death(self, code):
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return f"hang: more than {self.task['case_seconds']} s"
        return f"crash: exit code {code}: {self.errors.read_text(errors='replace')[-1500:]}"


def _keep(folder, kept):
    """Copy a forged input as it is: links stay links, pipes stay out, holes are not filled."""
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for file in sorted(Path(folder).rglob("*")) if Path(folder).exists() else ():
        copy, mode = kept / file.relative_to(folder), file.lstat().st_mode
        copy.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(mode):
            copy.symlink_to(os.readlink(file))
        elif stat.S_ISREG(mode) and file.lstat().st_size < 1 << 26:
            shutil.copyfile(file, copy)
        elif stat.S_ISDIR(mode):
            copy.mkdir(exist_ok=True)


# ---------------------------------------------------------------------------------------------- in the child


def judged(target, folder):
    """Return the outcome of one input, and whether it is allowed; also for inputs that are kept in a corpus."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f"works: {target.attempt(Path(folder))}", True
    except target.ALLOWED as error:
        if any(isinstance(cause, MemoryError) for cause in _causes(error)):
            return f"memory: {_described(error)}", False
        return _described(error), True
    except Exception as error:
        import traceback

        return f"raw {_described(error)}\n{traceback.format_exc()[-1500:]}", False


def _described(error):
    return f"{type(error).__name__}: {error}"[:500]


def _causes(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class _Watch:
    """Notes what a case does to the world outside of its folder."""

    def __init__(self, folder):
        self.folder, self.seen, self.active = os.path.realpath(folder), [], False
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if not self.active:
            return
        if event in STARTS:
            self.seen.append(f"{event}{arguments}")
        elif event in WRITES or (event == "open" and self._writes(arguments)):
            self.active = False
            place = f"/proc/self/fd/{arguments[0]}" if isinstance(arguments[0], int) else os.fsdecode(arguments[0])
            if event != "open" and not isinstance(arguments[0], int):  # what goes is the link, not what it leads to
                place = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
            else:
                place = os.path.realpath(place)
            if not place.startswith(self.folder):
                self.seen.append(f"{event}{arguments}")
            self.active = True

    @staticmethod
    def _writes(arguments):
        path, _, flags = arguments
        return isinstance(path, str | bytes) and bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def _limit_memory(more):
    if sys.platform == "linux":
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.RLIM_INFINITY))


def _limit_time(seconds):
    """Let the system end this process after that much work, or six times that by the clock; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 6 * seconds)


def _say(**words):
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _child(task, folder):
    target, end = importlib.import_module(task["target"]), time.monotonic() + task["seconds"]
    folder, watch = Path(folder), _Watch(folder)
    _limit_memory(task["memory"])
    for number in range(task["first"], task["first"] + task["count"]):
        if time.monotonic() > end:
            break
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        _say(number=number, forged=target.forge(random.Random(f"{task['seed']} {number}"), folder))
        _limit_time(task["case_seconds"])
        watch.active = True
        outcome, allowed = judged(target, folder)
        watch.active = False
        _limit_time(0)
        if watch.seen:
            outcome, allowed = f"acted: {watch.seen}"[:1500], False
            watch.seen.clear()
        _say(outcome=outcome, allowed=allowed)
        sys.stdin.readline()  # the folder is looked at meanwhile
    shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------- command line


def main(target):
    """Run a target from the command line; the exit code is 1 where a case failed."""
    options = argparse.ArgumentParser(description=f"forge inputs of {target} until n were tried or the time is over")
    options.add_argument("--n", type=int)
    options.add_argument("--seconds", type=float)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    options.add_argument("--corpus", type=Path, default=CORPUS, help="where failing inputs are kept")
    chosen = vars(options.parse_args())
    settings = getattr(importlib.import_module(target), "SETTINGS", {})
    outcome = run(target, **{**settings, **chosen}, tell=lambda so_far: _print(so_far))
    for failure in outcome.failures:
        _print(f"\ncase {failure.number}: {failure.forged}\n  {failure.outcome}\n  kept in {failure.kept}")
    _print(outcome)
    raise SystemExit(bool(outcome.failures))


def _print(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]), sys.argv[2])
