"""What users say is similar, and what is not: judgements in a durable log, and as pairs that models learn from.

_lines       a judgement as a line of JSON with its seal, and back
_file        the file of the log: what is complete, what was cut off, what is damaged
_columns     judgements in memory, by columns
_arguments   judgements as they are given
_resolving   from judgements, which may contradict each other, to signed pairs
_log         Feedback: one writer, many readers
"""

from ilhash.feedback._file import FILE, Report, verify
from ilhash.feedback._lines import Judgement
from ilhash.feedback._log import Feedback
from ilhash.feedback._resolving import Summary

__all__ = ["FILE", "Feedback", "Judgement", "Report", "Summary", "verify"]
