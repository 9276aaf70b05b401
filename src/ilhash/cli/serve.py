"""``ilhash serve``: a model, its index and its feedback behind HTTP, with a page to look at them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import ilhash
from ilhash._extras import require
from ilhash.cli._options import Table
from ilhash.cli._screen import Timer, errors, tell

NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def serve(
    folder: Annotated[Path, Argument(help="Folder of the service; --model makes one.")],
    model: Annotated[Path | None, Option(help="Model of a new service.")] = None,
    vectors: Annotated[
        str | None, Option(help="Vectors of the items of a new service, as for `ilhash fit`; they are kept.")
    ] = None,
    codes: Annotated[
        Path | None, Option(help="Packed codes of the items instead of --vectors: nothing is learnt.")
    ] = None,
    ids: Annotated[
        str | None, Option(help="Ids, one per item: the lines of a .txt file, or what a .npy or .csv file holds.")
    ] = None,
    labels: Annotated[str | None, Option(help="Labels, one per item; file.csv::column names a column.")] = None,
    texts: Annotated[
        str | None, Option(help="Texts, one per item: the lines of a .txt file, or file.csv::column.")
    ] = None,
    pictures: Annotated[
        str | None,
        Option(help="Pictures: a .npy file (n, h, w[, 3]), a folder of files named by id, or a URL with {id}."),
    ] = None,
    margins: Annotated[
        bool, Option("--margins", help="Keep margins in the new index, for the order by margins.")
    ] = False,
    engine: Annotated[str | None, Option(help="URL of the engine for the codes of a new service.")] = None,
    table: Table = "ilhash",
    also: Annotated[list[str] | None, Option(help="Another model beside the current one, as name=directory.")] = None,
    host: Annotated[
        str, Option(help="Address to listen on; others than the loopback address need tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 for any that is free.")] = 8000,
    tokens: Annotated[
        Path | None,
        Option(
            help="File of tokens, lines of 'read TOKEN' or 'write TOKEN'; those of ILHASH_READ_TOKEN and "
            "ILHASH_WRITE_TOKEN count too."
        ),
    ] = None,
    unsafe: Annotated[bool, Option("--unsafe", help="Let others than this machine in without tokens.")] = False,
    allow_origin: Annotated[
        list[str] | None, Option(help="Origin whose pages may use the service; closed by default.")
    ] = None,
    allow_host: Annotated[list[str] | None, Option(help="Name by which requests may call the service.")] = None,
    read_only: Annotated[bool, Option("--read-only", help="Change nothing; follow the server that does.")] = False,
    no_batching: Annotated[bool, Option("--no-batching", help="Answer every search by itself.")] = False,
    wait: Annotated[float, Option(help="Milliseconds that a search waits for others that are on their way.")] = 1.0,
    n_threads: Annotated[int, Option("--n-threads", "-j", help="Threads of a scan; -1 for all cores.")] = 1,
    body: Annotated[int, Option(help="Bytes that a request may have.")] = 8 << 20,
    waiting: Annotated[int, Option(help="Requests at a time.")] = 256,
    vectors_per_second: Annotated[float, Option(help="Vectors per second over all requests; 0 for no limit.")] = 20_000,
) -> None:
    """Serve a folder over HTTP: search, changes, judgements, learning, and a page to look at it all.

    Without --model the folder must hold a service. A second server on the same folder only reads, and follows.
    """
    for module in NEEDED:
        require(module, "serve", "ilhash serve")
    from ilhash.serve import Limits, Service, Tokens, is_service, run

    limits = Limits(body=body, waiting=waiting, vectors_per_second=vectors_per_second)
    known = Tokens.found(tokens, os.environ)
    if model is not None:
        if is_service(folder):
            raise ValueError(f"--model must be given for a new folder, got {folder}, which holds a service")
        _make(folder, model, vectors, codes, ids, labels, texts, pictures, margins, engine, table)
    others = dict(_other(text) for text in also or ())
    with errors.status("opening"):
        service = Service(folder, others=others, writable=False if read_only else None, n_threads=n_threads)
    run(
        service,
        host=host,
        port=port,
        unsafe=unsafe,
        limits=limits,
        tokens=known,
        hosts=allow_host or (),
        origins=allow_origin or (),
        batching=not no_batching,
        wait=wait / 1000,
        started=lambda address: _say(address, service, known),
    )


def _say(address: str, service: Any, tokens: Any) -> None:
    state, how = service.state, "" if service.writable else ", which another process writes to and this one follows"
    tell(f"serving on {address}")
    tell(f"{len(state.view):,} items, {state.n_bits} bits, in {service.folder}{how}")
    if not tokens:
        tell("anybody on this machine may search and change it: there are no tokens")


def _other(text: str) -> tuple[str, Any]:
    name, equals, path = text.partition("=")
    if not equals or not name:
        raise ValueError(f"--also must be name=directory, got {text!r}")
    return name, ilhash.load(path)


def _make(
    folder: Path,
    model: Path,
    vectors: str | None,
    codes: Path | None,
    ids: str | None,
    labels: str | None,
    texts: str | None,
    pictures: str | None,
    margins: bool,
    engine: str | None,
    table: str,
) -> None:
    """Make the folder of a new service."""
    import numpy as np

    from ilhash.cli._files import read_ids, read_labels, read_vectors
    from ilhash.serve import make

    made_by = ilhash.load(model)
    X, y = (None, None) if vectors is None else read_vectors(vectors, made_by.left_out_)
    hashed = None if codes is None else ilhash.open_codes(codes, len(made_by.functions_)).read()
    arrays = np.load(pictures, mmap_mode="r") if pictures and pictures.endswith(".npy") else pictures
    with Timer() as took, errors.status("making the service"):
        make(
            folder,
            made_by,
            X,
            codes=hashed,
            ids=None if ids is None else read_ids(ids),
            labels=y if labels is None else read_labels(labels),
            texts=None if texts is None else [str(one) for one in read_ids(texts).tolist()],
            pictures=arrays,
            margins=margins,
            engine=engine,
            table=table,
        )
    tell(f"made a service in {folder} in {took}")
