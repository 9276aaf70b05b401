"""``ilhash info``: what a model, an index, a file of codes or a log of feedback is."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table
from typer import Option

import ilhash
from ilhash.cards import page
from ilhash.cli._files import check_new_file, kind_of
from ilhash.cli._options import Force, Written
from ilhash.cli._screen import say, tell
from ilhash.storage import write_file


def info(
    path: Written,
    html: Annotated[Path | None, Option(help="A page of a model: what it is, what it is worth, its curves.")] = None,
    force: Force = False,
) -> None:
    """Tell what a model is and how its bits were trained; or what an index, codes or feedback hold."""
    kind = kind_of(path)
    if html is not None:
        if kind != "model":
            raise ValueError(f"--html must be left out unless the path is a model, got {path}")
        check_new_file("--html", html, (".html",), force=force)
        write_file(html, [page(ilhash.load(path).card()).encode("utf-8")])
        tell(f"page of the model in {html}")
        return
    if kind == "model":
        _tell_model(path)
    elif kind == "index":
        _tell_index(path)
    elif kind == "feedback":
        _tell_feedback(path)
    else:
        codes = ilhash.open_codes(path)
        files = f"{len(codes.names)} shards" if kind == "shards" else "one file"
        tell(f"codes: {len(codes):,} of {codes.n_bits} bits ({codes.shape[1]} bytes each) in {files}")
        tell(f"model: {codes.model or 'not known'}")


def _tell_index(path: Path) -> None:
    with ilhash.HammingIndex.open(path, writable=False) as index:
        size = f"{len(index):,} items of {index.n_bits} bits on {index.n_distinct:,} distinct codes"
        kinds = {"i": "whole numbers", "O": "texts"}
        parts = ", ".join(f"{name} {size:.1f}" for name, size in index.bytes_per_item.items())
        tell(f"index: {size}; ids are {kinds.get(index.ids.dtype.kind, 'texts')}\nbytes per item: {parts}")
        tell(f"model: {index.model or 'not known'}")


def _tell_feedback(path: Path) -> None:
    with ilhash.Feedback.open(path, writable=False) as log:
        kinds = {"int": "whole numbers", "str": "texts", None: "not there yet"}
        tell(f"feedback: {log.summary()}\nids are {kinds[log.id_kind]}")
        times = [one.time for one in log]
        if times:
            first, last = (np.datetime64(int(time), "s") for time in (min(times), max(times)))
            tell(f"judged from {first} to {last} (UTC)")


def _tell_model(path: Path) -> None:
    loaded = ilhash.load(path)
    kinds = sorted({function.kind for function in loaded.functions_})
    size = f"{len(loaded.functions_)} bits, {loaded.n_features_in_} features"
    say.print(f"[bold]{type(loaded).__name__}[/] {size}, functions: {', '.join(kinds)}")
    for family in loaded.families_ if isinstance(loaded, ilhash.Mix) else [loaded]:
        if family is not loaded:
            say.print(f"[bold]{type(family).__name__}[/] {len(family.functions_)} of the bits")
        for part in family.generations if isinstance(family, ilhash.ILH) else [family]:
            _tell_training(part)
    _tell_provenance(loaded)


def _tell_provenance(model: Any) -> None:
    """Say where bits came from, one line for bits that came together."""
    bits = model.provenance()
    ends = [place for place in range(1, len(bits) + 1) if place == len(bits) or bits[place] != bits[place - 1]]
    for first, end in zip([0, *ends], ends, strict=False):
        one = bits[first]
        name = f" {one.name!r}" if one.name else ""
        points = "" if one.n_points is None else f" on {one.n_points:,} points"
        data = "" if one.data is None else f", data {one.data[:12]}"
        trained = f", trained {one.date[:10]}{points}" if one.date else ""
        about = f"{one.method}, generation {one.generation}{name}{trained}{data}, seed {one.seed}"
        say.print(f"bits {first} to {end - 1}: {about}", soft_wrap=True)


def _tell_training(model: Any) -> None:
    ensemble = isinstance(model, ilhash.ILH)
    trained_on = f"diversity {model.diversity!r}, {_training_sets(model)}" if ensemble else _training_points(model)
    say.print(f"{trained_on}; seed {model.seed_}", soft_wrap=True)
    defaults = type(model)().get_params()
    changed = {name: value for name, value in model.get_params().items() if value != defaults[name]}
    say.print(f"parameters other than default: {changed or 'none'}", soft_wrap=True)
    if ensemble:
        _tell_start(model)
        _tell_bits(model.bits_)


def _tell_start(model: Any) -> None:
    about = getattr(model, "start_", None) or {"kind": model.start, "reason": "not kept"}
    say.print(f"start: {about['kind']} ({about['reason']})", soft_wrap=True)
    if about["kind"] != "projection":
        return
    space = "principal" if about["shrinkage"] is None else f"discriminant (shrinkage {about['shrinkage']:g})"
    say.print(f"{space} directions, {about['directions']} rotated together")
    if about["judged"]:
        scores = f"{about['score']:.3f}, principal directions {about['principal']:.3f}"
        say.print(f"on {about['judged']} held out of their choice: {scores}", soft_wrap=True)
    what = {"hyperplane": "are the bits", "classes": "become those of class means", "graph": "are moved by the graph"}
    tried = ", ".join(f"{name} {about[f'by {name}']:.3f}" for name in what if f"by {name}" in about)
    moved = np.mean([report.moved or 0.0 for report in model.bits_])
    say.print(
        f"sides of hyperplanes {' and, in turn, '.join(what[way] for way in about['ways'])}; {moved:.1%} of the points "
        f"changed sides{f' (trial bits: {tried})' if tried else ''}",
        soft_wrap=True,
    )


def _tell_bits(reports: list[Any]) -> None:
    columns = {
        "sweeps of the z-step": [report.sweeps for report in reports],
        "blocks": [report.n_blocks for report in reports],
        "share of +1": [report.balance for report in reports],
        "training accuracy": [report.accuracy for report in reports],
        "milliseconds": [1e3 * sum(report.seconds.values()) for report in reports],
    }
    table = Table("", "mean", "least", "most", title="over bits")
    for title, values in columns.items():
        table.add_row(title, *(f"{f(values):.3g}" for f in (np.mean, np.min, np.max)))
    say.print(table)


def _training_points(model: Any) -> str:
    """Say how many points all bits were learnt from, and of how many, which earlier versions did not keep."""
    drawable = f" of {model.n_drawable_:,}" if model.n_drawable_ else ""
    auto = f' (n_train="auto": up to {model.auto_train:,})' if model.n_train == "auto" else ""
    return f"{model.n_train_:,}{drawable} points{auto}, the same for all bits"


def _training_sets(model: Any) -> str:
    text = f"{model.n_train_:,} points per bit" + (' (n_train="auto")' if model.n_train == "auto" else "")
    if "t" not in model.diversity:
        return f"{text}, the same for all"
    if model.sampling != "disjoint":
        return f"{text}, {model.sampling}"
    if len(model.bits_) > model.n_disjoint_:
        return f"{text}, {model.n_disjoint_} disjoint sets, then a fresh permutation"
    return f"{text}, all disjoint"
