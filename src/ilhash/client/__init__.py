"""A service of ``ilhash serve`` from Python, with the methods of an index; nothing but Python's own library.

_connection   one request after the other over a connection that is kept, again after a while where the service is busy
_answers      what a service answers, as values
_client       Client
"""

from ilhash.client._answers import Hits, Progress, ServiceError
from ilhash.client._client import Client

__all__ = ["Client", "Hits", "Progress", "ServiceError"]
