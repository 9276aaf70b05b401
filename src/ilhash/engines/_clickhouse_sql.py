"""Statements and values as ClickHouse wants them, also for a cluster of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ilhash.engines._settings import Settings
from ilhash.engines._statements import NAME, OWN_COLUMNS, as_json

VERSION, DELETED = "ilhash_version", "ilhash_deleted"
KEY = "String"  # of texts as ids
TYPES = {"int": "Int64", "float": "Float64", "text": "Nullable(String)", "bool": "Bool"}


def distributed_sql(
    cluster: str, table: str, n_bits: int, *, ids: str = "int", columns: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the statements for a cluster of ClickHouse servers: codes past one machine, searched exactly.

    An item lies on the shard that a hash of its code says, so equal codes lie together. The k nearest come with all
    ties of the last distance: each shard sorts its items, and the server that is asked merges them until the ties are
    complete. An update that gives an item another code may put it on another shard, where no row replaces the old one:
    remove the item with its old code first. The statements are tried in chdb, with the query over two shards inside one
    process; no network of servers was at hand.

    Parameters
    ----------
    cluster : str, name of the cluster in the servers' configuration
    table : str, the Distributed table; the local ones are called ``<table>_local``
    n_bits : int, bits of a code; beyond 2,048 the servers must allow_suspicious_fixed_string_types
    ids : {"int", "str"}, default "int", the kind of ids
    columns : mapping, optional, further columns: name to "int", "float", "text" or "bool"

    Returns
    -------
    dict, "local" and "distributed" (run once), "insert" (rows follow it, in any format: ids, codes as bytes, columns,
    version, whether the item is removed) and "nearest" (parameters ``query``, the code in hexadecimal digits, and
    ``k``)

    Examples
    --------
    >>> distributed_sql("shards", "items", 64)["insert"]
    'INSERT INTO items (id, code, ilhash_version, ilhash_deleted)'
    """
    for name, value in (("cluster", cluster), ("table", table)):
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise ValueError(f"{name} must be a name of at most 40 letters, digits and _, got {value!r}")
    settings = Settings(n_bits, ids, None, dict(columns or {}))
    refuse_column_names(settings)
    width, local = (n_bits + 7) // 8, f"{table}_local"
    comment = as_json(settings)
    made = items_sql(f"{local} ON CLUSTER {cluster}", columns_sql(settings), comment)
    names = "".join(f', "{name}"' for name in settings.columns)
    far = f"toInt32(bitHammingDistance(code, toFixedString(unhex({{query:String}}), {width})))"
    shards = f"Distributed({cluster}, currentDatabase(), {local}, cityHash64(code))"
    return {
        "local": made,
        "distributed": f"CREATE TABLE {table} ON CLUSTER {cluster} AS {local} ENGINE = {shards}",
        "insert": f"INSERT INTO {table} (id, code{names}, {VERSION}, {DELETED})",
        "nearest": (
            f"SELECT id, far FROM (SELECT id, {far} AS far FROM {table} FINAL "
            "ORDER BY far LIMIT {k:UInt64} WITH TIES) ORDER BY far, id"
        ),
    }


def columns_sql(settings: Settings) -> str:
    """Return the columns of a table of items."""
    key = TYPES["int"] if settings.ids == "int" else KEY
    parts = [f"id {key}", f"code FixedString({(settings.n_bits + 7) // 8})"]
    return ", ".join([*parts, *(f'"{name}" {TYPES[kind]}' for name, kind in settings.columns.items())])


def refuse_column_names(settings: Settings) -> None:
    """Refuse names of columns that are not plain or are ours."""
    own = (*OWN_COLUMNS, VERSION, DELETED)
    wrong = [name for name in settings.columns if not NAME.fullmatch(name) or name.lower() in own]
    if wrong:
        rule = f"columns must have names of letters, digits and _ other than {', '.join(own)}"
        raise ValueError(f"{rule}, got {wrong[0]!r}")


def items_sql(name: str, columns: str, comment: str) -> str:
    """Return the statement that makes a table of items, on disk when an INSERT returns."""
    quoted = comment.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"CREATE TABLE {name} ({columns}, {VERSION} UInt64, {DELETED} UInt8) "
        f"ENGINE = ReplacingMergeTree({VERSION}, {DELETED}) ORDER BY id "
        f"SETTINGS fsync_after_insert = 1, fsync_part_directory = 1 COMMENT '{quoted}'"
    )


def typed(name: str, value: Any) -> tuple[str, Any]:
    """Return the type of a value, and the value as ClickHouse reads parameters, where a backslash begins an escape."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return "Bool", value
    if isinstance(value, int):
        return "Int64", value
    if isinstance(value, float):
        return "Float64", value
    if isinstance(value, str):
        for letter, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ("\0", "\\0")):
            value = value.replace(letter, escaped)
        return "String", value
    raise ValueError(f"parameters must be numbers, texts or truth values, got {type(value).__name__} of {name!r}")


def sentence(error: Exception) -> str:
    """Return what ClickHouse says without its stack."""
    return " ".join(str(error).partition("Stack trace")[0].split())[:400]
