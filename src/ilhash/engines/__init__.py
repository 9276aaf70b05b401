"""Codes where people keep their items: one contract, one file per engine.

::

    codes + ids  ->  engines.open("postgresql://...")  ->  the same answers as HammingIndex, or ``exact=False``

_contract     what every engine does
_hooks        what an engine writes for it, and tools for that
_settings     bits, ids, columns of a place; filters; errors
_bits         other bits for items that are there
_places       URLs, and which extra an engine needs
_order        better order of what an engine found
_recall       how much an approximate mode misses, measured on codes of yours
_sql          tables of distinct codes and of items, for engines that speak SQL; _statements the texts
_postings     lists of items beside a library's index file; _shelf what is in memory, _pair the files
"""

from ilhash.engines._contract import Engine
from ilhash.engines._places import ENTRIES, Entry, is_url, open, without_password  # noqa: A004 (engines.open, as in gzip.open)
from ilhash.engines._recall import ENOUGH, Recall, measure_recall
from ilhash.engines._settings import EngineError

__all__ = [
    "ENOUGH",
    "ENTRIES",
    "Engine",
    "EngineError",
    "Entry",
    "Recall",
    "is_url",
    "measure_recall",
    "open",
    "without_password",
]
