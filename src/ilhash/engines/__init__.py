"""Codes where people keep their items: one contract, one file per engine.

::

    codes + ids  ->  engines.open("postgresql://...")  ->  the same answers as HammingIndex, or ``exact=False``

_contract   what every engine does; the hooks that an engine writes
_places     URLs, and which extra an engine needs
_order      better order of what an engine found
_sql        tables of distinct codes and of items, for engines that speak SQL
_recall     how much an approximate mode misses, measured on codes of yours
"""

from ilhash.engines._contract import Engine, EngineError
from ilhash.engines._places import ENTRIES, Entry, is_url, open, without_password  # noqa: A004 (engines.open, as in gzip.open)
from ilhash.engines._recall import ENOUGH, Recall, measure_recall

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
