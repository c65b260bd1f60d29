"""A rule of a bucket's lifecycle: which objects it deletes. `core/lifecycle.py` says when it applies."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRule:
    """Every condition that is given must hold. Dates are written YYYY-MM-DD, in UTC."""

    age: int | None = None  # days since the object was created
    created_before: str = ""
    is_live: bool | None = None
    newer_versions: int | None = None  # of the same object, at least
    noncurrent_days: int | None = None  # since it was replaced or deleted
    noncurrent_before: str = ""
    prefixes: tuple[str, ...] = ()  # its name begins with one of these
    suffixes: tuple[str, ...] = ()
