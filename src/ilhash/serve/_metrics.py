"""What Prometheus is told."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ilhash.serve._service import Service

TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts of one server."""

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        own = self._registry
        self.requests = Counter("ilhash_requests", "requests", ["method", "route", "status"], registry=own)
        self.seconds = Histogram(
            "ilhash_request_seconds", "time of a request", ["route"], buckets=_SECONDS, registry=own
        )
        self.batches = Histogram("ilhash_batch_vectors", "vectors of a scan", buckets=_ROWS, registry=own)
        self.together = Histogram("ilhash_batch_requests", "requests that a scan answers", buckets=_ROWS, registry=own)
        self.writes = Histogram("ilhash_commit_changes", "changes of a commit", buckets=_ROWS, registry=own)
        self.learning = Counter("ilhash_learning_runs", "runs of learning", ["state"], registry=own)
        self._items = Gauge("ilhash_items", "items", registry=own)
        self._judgements = Gauge("ilhash_judgements", "judgements", registry=own)
        self._generation = Gauge("ilhash_generation", "models that were swapped in, and one", registry=own)
        self._bits = Gauge("ilhash_bits", "bits of a code", registry=own)
        self.active = Gauge("ilhash_requests_active", "requests that are worked on or wait", registry=own)

    def text(self) -> bytes:
        """Return all of them as text."""
        with self._service.reading() as state:
            self._items.set(len(state.view))
            self._generation.set(state.generation)
            self._bits.set(state.n_bits)
        self._judgements.set(self._service.judged()["judgements"])
        return generate_latest(self._registry)
