"""Files that commands read and write: vectors, labels, codes, ids, hits, numbers, pictures."""

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ilhash
from ilhash import plots
from ilhash.cli._screen import progress, tell
from ilhash.storage import write_files

HitLists = Sequence[tuple[NDArray[Any], NDArray[Any]]]  # ids and distances of each query


def read_vectors(source: str, without: Sequence[str] = ()) -> tuple[Any, Any]:
    """Open a file or a directory of files, or read a dataset by name (name::target), which may have labels too.

    Columns of a table that are no features are left out by their names.
    """
    dataset = _named_dataset(source)
    return (ilhash.open_vectors(source, without=without), None) if dataset is None else (dataset.X, dataset.y)


def read_supervised(source: str, without: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Return vectors and, of a dataset that has them, the labels or pairs that ``fit`` learns from."""
    dataset = _named_dataset(source)
    if dataset is None:
        return ilhash.open_vectors(source, without=without), {}
    if dataset.pairs is None:
        return dataset.X, {"y": dataset.y}
    from ilhash.affinity import with_random_dissimilar

    tell(f"{source}: {len(dataset.pairs):,} similar pairs, and as many random ones as dissimilar")
    return dataset.X, {"pairs": with_random_dissimilar(dataset.pairs, len(dataset.X))}


def read_supervision(labels: str | None, pairs: str | None, affinity: Path | None) -> dict[str, Any]:
    """Read what was given; more than one kind is left for the model to refuse."""
    from ilhash.vectors.io import read_matrix

    read: dict[str, Any] = {}
    if labels is not None:
        read["y"] = read_labels(labels)
    if pairs is not None:
        read["pairs"] = read_matrix(pairs)
    if affinity is not None:
        read["affinity"] = read_sparse(affinity)
    return read


def read_own_columns(
    vectors: str, labels: str | None, labels_column: str | None, ids_column: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return labels that a column of the vectors' table holds, and the columns that are no features."""
    from ilhash.vectors.io import read_column

    if labels is not None and labels_column is not None:
        raise ValueError("one of --labels and --labels-column must be given, got both")
    if ids_column is not None:
        read_id_column(vectors, ids_column)  # which is there, and complete
    read = {} if labels_column is None else {"y": read_column(vectors, labels_column)}
    return read, [name for name in (ids_column, labels_column) if name is not None]


def read_id_column(vectors: str, name: str) -> NDArray[Any]:
    """Return the ids that a column of a table holds."""
    from ilhash.vectors.io import read_column

    return _complete(f"column {name!r} of {vectors}", read_column(vectors, name))


def read_names(vectors: str, ids: str | None, ids_column: str | None) -> NDArray[Any] | None:
    """Return ids from a file, or from a column of the vectors' own table, or None where neither was given."""
    if ids is not None and ids_column is not None:
        raise ValueError("one of --ids and --ids-column must be given, got both")
    if ids_column is not None:
        return read_id_column(vectors, ids_column)
    return None if ids is None else read_ids(ids)


def no_features(model: Any, ids_column: str | None) -> list[str]:
    """Return the columns of a table that are no features: those that the model left out, and that of ids."""
    return [*model.left_out_, *([] if ids_column is None else [ids_column])]


def _complete(where: str, ids: NDArray[Any]) -> NDArray[Any]:
    missing = sum(one is None for one in ids.tolist()) if ids.dtype == object else 0
    if missing:
        raise ValueError(f"{where} must have an id for every item, got none for {missing} of {len(ids)}")
    return ids


def _named_dataset(source: str) -> "ilhash.datasets.Dataset | None":
    name, _, target = source.partition("::")
    if name not in {entry.name for entry in ilhash.datasets.available()} or Path(name).exists():
        return None
    with progress("reading", "vectors") as move:
        return ilhash.datasets.load(name, target=target or None, progress=move)


def refuse_labels_among_features(vectors: str, labels: str | None) -> None:
    """Refuse to learn from a column of a table what the same column says."""
    from ilhash.vectors.io import feature_names, split_key

    if labels is None:
        return
    (file, column), (table, _) = split_key(labels), split_key(vectors)
    if column is not None and file.resolve() == table.resolve() and column.strip() in feature_names(vectors):
        raise ValueError(
            f"the vectors must leave out the column {column!r}, which --labels takes, got {vectors}: give "
            f"{table}::!{column} here and wherever the model is used"
        )


def read_labelled(vectors: str, labels: str | None) -> tuple[Any, Any]:
    """Return vectors and their labels, which must be there."""
    refuse_labels_among_features(vectors, labels)
    X, y = read_vectors(vectors)
    y = y if labels is None else read_labels(labels)
    if y is None:
        raise ValueError(
            f"--labels must be given: they tell which held-out points are retrieved well, got none for {vectors}"
        )
    return X, y


def read_labels(source: str) -> NDArray[Any]:
    """Return labels, one per row or an indicator matrix."""
    from ilhash.vectors.io import read_vector

    return read_vector(source)


def read_sparse(path: Path) -> Any:
    """Return the matrix of a file of scipy.sparse.save_npz."""
    from ilhash.vectors import io

    try:
        return io.read_sparse(path)
    except ValueError as error:
        raise ValueError(f"--affinity must be a file of scipy.sparse.save_npz, got {path}: {error}") from None


def read_ids(source: str) -> NDArray[Any]:
    """Return ids: the lines of a .txt file as they are, or what any file of labels holds."""
    from ilhash.vectors.io import read_lines

    path = Path(source)
    if path.suffix.lower() != ".txt":
        return _complete(source, read_labels(source))
    lines = read_lines(path)
    blank = sum(not line for line in lines)
    if blank:
        raise ValueError(f"{path} must have an id in every line, got {blank} of {len(lines)} lines without")
    return np.array(lines, object)


def ids_as_file(path: Path, ids: NDArray[Any]) -> bytes:
    """Return what is written of ids: a .npy file, or a .txt file with one per line."""
    if path.suffix == ".npy":
        return _npy(ids.astype(str) if ids.dtype == object else ids)
    broken = [one for one in ids.tolist() if isinstance(one, str) and ("\n" in one or "\r" in one or not one)]
    if broken:
        raise ValueError(f"--ids must be a .npy file where ids have line ends or are empty, got {path}")
    return "".join(f"{one}\n" for one in ids.tolist()).encode()


def check_new_file(option: str, path: Path, suffixes: Sequence[str], *, force: bool) -> None:
    """Refuse a file that could not, or should not, be written when the work is done."""
    if path.suffix not in suffixes:
        raise ValueError(f"{option} must be a {' or '.join(suffixes)} file, got {path}")
    if path.exists() and not (force and path.is_file()):
        raise ValueError(f"{option} must be a new file, got {path}, which exists; --force replaces a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} must be in a folder that exists, got {path}")


def check_new_directory(option: str, path: Path | None, *, force: bool) -> None:
    """Refuse to replace what is there, unless it is wished."""
    if path is not None and path.exists() and not force:
        raise ValueError(f"{option} must be a new directory, got {path}, which exists; --force replaces a model")


class NumbersAndPicture:
    """What --json and --plot ask for; what could not be written after the work is refused before it."""

    def __init__(self, json_path: Path | None, plot: Path | None, *, force: bool) -> None:
        self.json_path, self.plot = json_path, plot
        if json_path is not None:
            check_new_file("--json", json_path, (".json",), force=force)
        if plot is not None:
            check_new_file("--plot", plot, plots.PICTURES, force=force)
            plots.figure_class()  # a missing matplotlib is said before the work, not after

    def write(self, numbers: Any, figure: Callable[[], Any]) -> None:
        """Write them, and say so; the figure is drawn where it is wanted."""
        files = {}
        if self.json_path is not None:
            files[self.json_path] = json.dumps(numbers, indent=1, allow_nan=False).encode() + b"\n"
        if self.plot is not None:
            files[self.plot] = plots.picture(figure(), self.plot.suffix)
        write_files(files)
        if files:
            tell(f"written: {', '.join(map(str, files))}")


def hits_as_json(found: HitLists, names: Sequence[Any] | None = None) -> str:
    """Return one object per query, by its name or number, as JSON in ASCII."""
    queries = zip(range(len(found)) if names is None else names, found, strict=True)
    return json.dumps(
        [{"query": q, "ids": ids.tolist(), "distances": distances.tolist()} for q, (ids, distances) in queries]
    )


def hits_as_files(path: Path, found: HitLists, names: Sequence[Any] | None = None) -> dict[Path, bytes]:
    """Return what is written: .json; .csv; .npz of offsets, ids and distances; .npy of ids, distances beside it."""
    if path.suffix == ".json":
        return {path: hits_as_json(found, names).encode() + b"\n"}
    if path.suffix == ".csv":
        return {path: _hits_as_csv(found, names)}
    ids = [ids.astype(str) if ids.dtype == object else ids for ids, _ in found]
    distances = [distances for _, distances in found]
    if path.suffix == ".npz":
        buffer = io.BytesIO()
        offsets = np.cumsum([0, *map(len, ids)])
        np.savez(buffer, offsets=offsets, ids=np.concatenate(ids), distances=np.concatenate(distances))
        return {path: buffer.getvalue()}
    if len({len(row) for row in ids}) > 1:
        raise ValueError(f"--output must be a .npz or .json file where queries differ in their hits, got {path}")
    return {path: _npy(np.array(ids)), distances_beside(path): _npy(np.array(distances))}


def _hits_as_csv(found: HitLists, names: Sequence[Any] | None) -> bytes:
    """Return a line for each hit, the nearest first."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["query", "rank", "id", "distance"])
    for query, (ids, distances) in zip(range(len(found)) if names is None else names, found, strict=True):
        for rank, (one, distance) in enumerate(zip(ids.tolist(), distances.tolist(), strict=True), 1):
            lines.writerow([query, rank, one, distance])
    return text.getvalue().encode()


def kind_of(path: Path) -> str:
    """Return what is at a path: "codes" (a file), "shards", "index", "feedback", or "model" for whatever else it is."""
    if path.is_file():
        return "codes"
    if (path / "config.json").exists():
        return "model"
    if os.path.lexists(path / "judgements.jsonl"):
        return "feedback"
    if any(path.glob("segment-*.bin")) or (path / "lock").exists():
        return "index"
    if any(path.glob("codes-*.npy")):
        return "shards"
    manifest = path / "manifest.json"
    if not manifest.is_file():
        return "model"
    with manifest.open("rb") as file:
        return "index" if file.read(11) == b'{"sha256": ' else "shards"


def distances_beside(path: Path) -> Path:
    """Return the file of the distances that belongs to a .npy file of ids."""
    return path.with_suffix(".distances.npy")


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
