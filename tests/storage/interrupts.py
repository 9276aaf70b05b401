"""Ctrl-C at any line: what a signal does at some moment, done at each."""

import itertools
import sys
from pathlib import Path

import ilhash

OURS = str(Path(ilhash.__file__).parent)


def _in_del(frame):
    """Whether an object is being deleted: Python itself swallows what is raised then."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def interrupted_at(line, action, then):
    """Do something, be interrupted at the line of ours with that number, and do it again; return whether it was."""
    counter = itertools.count()

    def trace(frame, event, _):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line" and not _in_del(frame) and next(counter) == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        then()  # while the traceback, and all that it refers to, is still there
        return True
    finally:
        sys.settrace(before)
    then()
    return False
