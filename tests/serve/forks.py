"""Starts servers on demand, each a process of its own that is there at once: all they import was imported before.

As a program: ``python -m tests.serve.forks``. A line of standard input is a JSON object with the folder, and options of
``ilhash.serve.run``; the answer is the address and the number of the process.
"""

import json
import os
import signal
import subprocess
import sys
import time


class Forks:
    """The process that starts others."""

    def __init__(self):
        command = [sys.executable, "-m", "tests.serve.forks"]
        root = os.path.join(os.path.dirname(__file__), "..", "..")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)

    def start(self, folder, **options):
        self._process.stdin.write(json.dumps({"folder": str(folder), **options}) + "\n")
        self._process.stdin.flush()
        address, pid = self._process.stdout.readline().split()
        return Server(address, int(pid))

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class Server:
    """A server, by its address and the number of its process."""

    def __init__(self, address, pid):
        self.address, self.pid = address, pid
        self.host, port = address.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)

    def send(self, number):
        os.kill(self.pid, number)

    def alive(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def stop(self, number=signal.SIGTERM, seconds=60):
        if self.alive():
            self.send(number)
        end = time.monotonic() + seconds
        while self.alive():
            assert time.monotonic() < end, "the server does not end"
            time.sleep(0.005)

    def memory(self):
        """Bytes that the process has in memory."""
        with open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _serve(folder, others=None, writable=None, limits=None, tokens=None, **options):
    import ilhash
    from ilhash.serve import Limits, Service, Tokens, run

    models = {name: ilhash.load(path) for name, path in (others or {}).items()}
    service = Service(folder, others=models, writable=writable)
    known = Tokens.found(tokens, {})

    def started(address):
        say(address, os.getpid())

    run(service, port=0, limits=Limits(**(limits or {})), tokens=known, started=started, **options)


def _main():
    import ilhash.serve._run
    import ilhash.serve._service  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that end
    for line in sys.stdin:
        if os.fork() == 0:
            code = 1
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(0)
                _serve(**json.loads(line))
                code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
                say("failed", 0)
            os._exit(code)


if __name__ == "__main__":
    _main()
