"""A search service over HTTP that learns: a model, its index and its feedback in one folder.

::

    make(folder, model, X, labels=...)      Service(folder)       run(service)

_layout         the folder, and the document that says what it is made of
_making         a folder is made
_item_log       vectors, labels and texts of items in a file that only grows; _items what is known of them
_codes          an index or an engine under one roof; _state what requests see
_service        what changes, durably
_searching      answers to many searches at once; _batches puts them together
_learning       new bits from judgements; _looking what a person looks at; _pictures
_schemas        what requests hold; _problems errors; _limits, _guard safety; _metrics
_context        a service at work; _routes, _routes_of_the_page its addresses
_openapi, _app  the application, and what it says of itself; _run the server

What only the server needs (the extra ``serve``) is imported by :func:`run`.
"""

from __future__ import annotations

from typing import Any

from ilhash.serve._layout import is_service
from ilhash.serve._limits import Limits, Tokens
from ilhash.serve._making import make
from ilhash.serve._service import Service

__all__ = ["Limits", "Service", "Tokens", "is_service", "make", "run"]


def run(service: Service, **options: Any) -> None:
    """Serve until a signal ends it.

    Parameters
    ----------
    service : Service, which is closed at the end
    **options : as for ``ilhash serve``: host, port, unsafe, limits, tokens, hosts, origins, batching, wait, started
    """
    from ilhash.serve import _run

    _run.run(service, **options)
