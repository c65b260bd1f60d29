"""One page of a bucket's names, in order; names that share a prefix up to a delimiter are listed once.

Names that share a prefix are skipped by the index and not read, so a folder of a million objects costs one
step.
"""

import sqlite3
from dataclasses import dataclass, field

from trainshed.buckets import index, versions
from trainshed.core.bucket import PAGE, ObjectInfo, ObjectListing, ObjectQuery

_STEP = 100  # objects asked for at once where any of them may make the rest needless


def find(db: sqlite3.Connection, bucket: str, query: ObjectQuery) -> ObjectListing:
    if query.versions:
        return _find_versions(db, bucket, query)
    page = _Page(query)
    low, end = page.bounds()
    if not query.delimiter:
        page.items.extend(index.walk(db, bucket, low, end, query.size + 1))
        more = len(page.items) > query.size
        del page.items[query.size :]
        return page.listing(page.items[-1].name if more else "")
    while (room := query.size - page.count) > 0:
        limit = min(room, _STEP)
        count = 0
        for count, info in enumerate(index.walk(db, bucket, low, end, limit), 1):  # noqa: B007
            if (skipped := page.add(info)) is not None:
                low = skipped
                break
            low = info.name.encode() + b"\0"
        else:
            if count < limit:
                return page.listing("")
    more = index.first_name(db, bucket, low)
    return page.listing(page.last if more is not None and (end is None or more < end) else "")


def _find_versions(db: sqlite3.Connection, bucket: str, query: ObjectQuery) -> ObjectListing:
    page = _Page(query)
    name, end = page.bounds()
    low = (name, 0)
    if query.after_generation:
        low = max(low, (query.after.encode(), query.after_generation + 1))
    while True:
        limit = min(query.size - page.count, _STEP if query.delimiter else PAGE) + 1
        count = 0
        for count, info in enumerate(versions.walk(db, bucket, low, end, limit), 1):  # noqa: B007
            if page.count == query.size:
                last = page.items[-1] if page.items else None
                generation = last.generation if last is not None and last.name == page.last else 0
                return page.listing(page.last, generation)
            if (skipped := page.add(info)) is not None:
                low = (skipped, 0)
                break
            low = (info.name.encode(), info.generation + 1)
        else:
            if count < limit:
                return page.listing("")


@dataclass(slots=True)
class _Page:
    query: ObjectQuery
    items: list[ObjectInfo] = field(default_factory=list[ObjectInfo])
    prefixes: list[str] = field(default_factory=list[str])
    last: str = ""

    @property
    def count(self) -> int:
        return len(self.items) + len(self.prefixes)

    def bounds(self) -> tuple[bytes, bytes | None]:
        """The first name to list, and the first after the last one."""
        query = self.query
        low = max(query.prefix.encode(), query.start.encode())
        if query.after and not query.after_generation:
            behind = len(query.prefix)
            is_prefix = query.delimiter and query.delimiter in query.after[behind:]
            after = query.after.encode()
            low = max(low, (successor(after) or after) if is_prefix else after + b"\0")
        end = successor(query.prefix.encode())
        if query.end:
            end = min(end, query.end.encode()) if end else query.end.encode()
        return low, end

    def add(self, info: ObjectInfo) -> bytes | None:
        """Add the object, or the prefix that stands for it; returns the name to continue with."""
        query, behind = self.query, len(self.query.prefix)
        cut = info.name.find(query.delimiter, behind) if query.delimiter else -1
        if cut < 0:
            self.items.append(info)
            self.last = info.name
            return None
        prefix = info.name[: cut + len(query.delimiter)]
        if query.trailing and prefix == info.name:
            self.items.append(info)
        self.prefixes.append(prefix)
        self.last = prefix
        return successor(prefix.encode()) or prefix.encode() + b"\xff"

    def listing(self, next_after: str, next_generation: int = 0) -> ObjectListing:
        return ObjectListing(
            items=tuple(self.items),
            prefixes=tuple(self.prefixes),
            next_after=next_after,
            next_generation=next_generation,
        )


def successor(prefix: bytes) -> bytes | None:
    """The first bytes that sort behind everything with the prefix; None where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
