"""Hash functions as named arrays and back; functions that can be stacked are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.functions._anchors import AnchorFunction, Anchors
from ilhash.functions._base import HashFunction
from ilhash.functions._classifier import ClassifierFunction
from ilhash.functions._codewords import CodewordFunction
from ilhash.functions._cosine import CosineFunction
from ilhash.functions._kernel import KernelFunction, RadialBasis
from ilhash.functions._linear import LinearFunction
from ilhash.functions._trees import TreeFunction

__all__ = ["functions_from_arrays", "functions_to_arrays"]

Arrays = dict[str, NDArray[Any]]


def functions_to_arrays(functions: Sequence[HashFunction]) -> tuple[Arrays, dict[str, bytes]]:
    """Return arrays, and for classifiers that are not arrays their skops files, by name."""
    groups: dict[Any, list[int]] = {}
    for bit, function in enumerate(functions):
        groups.setdefault(_group(function, bit), []).append(bit)
    arrays: Arrays = {}
    blobs: dict[str, bytes] = {}
    for number, bits in enumerate(groups.values()):
        members: list[Any] = [functions[bit] for bit in bits]
        kind = members[0].kind
        part = _WRITERS[kind](members)
        part["bits"] = np.array(bits, np.int32)
        arrays |= {f"{kind}.{number}.{name}": array for name, array in part.items()}
        if kind == "classifier":
            blobs[f"classifier-{number}"] = _to_skops(members[0].classifier)
    return arrays, blobs


def _group(function: HashFunction, bit: int) -> Any:
    if isinstance(function, LinearFunction):
        return "linear", len(function.weights), function.features is None
    if isinstance(function, KernelFunction):
        return "kernel", id(function.basis)
    if isinstance(function, AnchorFunction):
        return "anchors", id(function.anchors)
    if isinstance(function, CodewordFunction):
        return "codeword", id(function.scores)
    return "cosine" if isinstance(function, CosineFunction) else ("single", bit)


def _with_features(part: Arrays, features: list[NDArray[np.int32] | None]) -> Arrays:
    if features[0] is not None:
        part["features"] = np.stack([f for f in features if f is not None])
    return part


def _linear(members: list[LinearFunction]) -> Arrays:
    part = {
        "weights": np.stack([m.weights for m in members]),
        "bias": np.array([m.bias for m in members], np.float32),
    }
    return _with_features(part, [m.features for m in members])


def _kernel(members: list[KernelFunction]) -> Arrays:
    part = {
        "weights": np.stack([m.weights for m in members]),
        "bias": np.array([m.bias for m in members], np.float32),
    }
    return part | _basis(members[0].basis)


def _basis(basis: RadialBasis) -> Arrays:
    part: Arrays = {
        "centers": basis.centers,
        "factor": basis.factor,
        "width": np.array([basis.width], np.float64),
        "common": np.array([basis.common], np.uint8),
    }
    return _with_features(part, [basis.features])


def _cosine(members: list[CosineFunction]) -> Arrays:
    return {
        "weights": np.stack([m.weights for m in members]),
        "phase": np.array([m.phase for m in members], np.float32),
    }


def _anchors(members: list[AnchorFunction]) -> Arrays:
    anchors = members[0].anchors
    part = {
        "weights": np.stack([m.weights for m in members]),
        "cuts": np.array([(np.nan, np.nan) if m.cuts is None else m.cuts for m in members], np.float32),
        "nearest": np.array([anchors.nearest], np.int32),
    }
    return part | _basis(anchors.basis)


def _codewords(members: list[CodewordFunction]) -> Arrays:
    scores, _ = functions_to_arrays(members[0].scores)
    return {"ones": np.stack([m.ones for m in members])} | {f"scores.{name}": array for name, array in scores.items()}


_TREE_ARRAYS = tuple(f.name for f in fields(TreeFunction) if f.name not in ("bias", "features"))


def _trees(members: list[TreeFunction]) -> Arrays:
    (tree,) = members
    part: Arrays = {name: getattr(tree, name) for name in _TREE_ARRAYS}
    part["bias"] = np.array([tree.bias], np.float64)
    return _with_features(part, [tree.features])


def _classifier(members: list[ClassifierFunction]) -> Arrays:
    (member,) = members
    return _with_features({"shift": member.shift, "factor": member.factor}, [member.features])


_WRITERS: dict[str, Callable[[list[Any]], Arrays]] = {
    "linear": _linear,
    "kernel": _kernel,
    "cosine": _cosine,
    "anchors": _anchors,
    "codeword": _codewords,
    "trees": _trees,
    "classifier": _classifier,
}


def functions_from_arrays(arrays: Arrays, blobs: dict[str, bytes], trusted: list[str] | None) -> list[HashFunction]:
    """Do the inverse of :func:`functions_to_arrays`."""
    groups: dict[tuple[str, str], Arrays] = {}
    for name, array in arrays.items():
        kind, number, what = name.split(".", 2)
        groups.setdefault((kind, number), {})[what] = array
    found: dict[int, HashFunction] = {}
    members: list[HashFunction]
    for (kind, number), part in groups.items():
        if kind == "classifier":
            members = [_read_classifier(part, blobs[f"classifier-{number}"], trusted)]
        else:
            members = _READERS[kind](part)
        found |= {int(bit): function for bit, function in zip(part["bits"], members, strict=True)}
    return [found[bit] for bit in sorted(found)]


def _read_linear(part: Arrays) -> list[HashFunction]:
    own = part.get("features", [None] * len(part["bits"]))
    return [LinearFunction(w, b, f) for w, b, f in zip(part["weights"], part["bias"], own, strict=True)]


def _read_kernel(part: Arrays) -> list[HashFunction]:
    basis = _read_basis(part)
    return [KernelFunction(basis, w, b) for w, b in zip(part["weights"], part["bias"], strict=True)]


def _read_basis(part: Arrays) -> RadialBasis:
    width, common = float(part["width"][0]), bool(part["common"][0])
    return RadialBasis(part["centers"], part["factor"], width, _own_features(part), common)


def _own_features(part: Arrays) -> NDArray[Any] | None:
    return part["features"][0] if "features" in part else None


def _read_cosine(part: Arrays) -> list[HashFunction]:
    return [CosineFunction(w, p) for w, p in zip(part["weights"], part["phase"], strict=True)]


def _read_anchors(part: Arrays) -> list[HashFunction]:
    anchors = Anchors(_read_basis(part), int(part["nearest"][0]))
    cuts = [None if np.isnan(pair).any() else pair for pair in part["cuts"]]
    return [AnchorFunction(anchors, w, c) for w, c in zip(part["weights"], cuts, strict=True)]


def _read_codewords(part: Arrays) -> list[HashFunction]:
    inner = {name.removeprefix("scores."): array for name, array in part.items() if name.startswith("scores.")}
    scores = tuple(functions_from_arrays(inner, {}, None))
    return [CodewordFunction(scores, ones) for ones in part["ones"]]


def _read_trees(part: Arrays) -> list[HashFunction]:
    table = {name: part[name] for name in _TREE_ARRAYS}
    return [TreeFunction(**table, bias=float(part["bias"][0]), features=_own_features(part))]


def _read_classifier(part: Arrays, blob: bytes, trusted: list[str] | None) -> HashFunction:
    return ClassifierFunction(_from_skops(blob, trusted), part["shift"], part["factor"], _own_features(part))


_READERS: dict[str, Callable[[Arrays], list[HashFunction]]] = {
    "linear": _read_linear,
    "kernel": _read_kernel,
    "cosine": _read_cosine,
    "anchors": _read_anchors,
    "codeword": _read_codewords,
    "trees": _read_trees,
}


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "saving and loading classifiers other than SVMs and trees needs skops: pip install 'ilhash[skops]'"
        ) from None
    return skops.io


def _to_skops(classifier: Any) -> bytes:
    io = _skops()
    data: bytes = io.dumps(classifier)
    unknown = io.get_untrusted_types(data=data)
    own = type(classifier).__name__
    if unknown and not type(classifier).__module__.startswith("sklearn."):
        raise ValueError(
            f"hash_function must be a classifier of scikit-learn for the model to be saved, got {own}, which would "
            f"bring types that a loader does not trust: {', '.join(unknown)}"
        )
    return data


def _from_skops(data: bytes, trusted: list[str] | None) -> Any:
    io = _skops()
    unknown = [name for name in io.get_untrusted_types(data=data) if name not in (trusted or ())]
    unknown = [name for name in unknown if not name.startswith(("sklearn.", "numpy.", "scipy."))]
    if unknown:
        raise ValueError(
            f"a saved classifier must hold types that are trusted, got {', '.join(unknown)}; ilhash.load(path, "
            "trusted=[...]) names those you trust"
        )
    return io.loads(data, trusted=io.get_untrusted_types(data=data))
