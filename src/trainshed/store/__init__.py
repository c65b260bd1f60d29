"""The durable store: jobs, events and operations in SQLite or PostgreSQL."""

from trainshed.store.sql import SqlStore

__all__ = ["SqlStore"]
