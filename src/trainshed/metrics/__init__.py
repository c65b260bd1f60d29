"""The metric store: what replicas use and report, in small files per job."""

from trainshed.metrics.store import FileMetricStore

__all__ = ["FileMetricStore"]
