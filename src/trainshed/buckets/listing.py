"""A page of a bucket's names, in order, with what goes on behind a delimiter told once.

Names that share a prefix are skipped by the index and not read, so a folder of a million objects costs one
step.
"""

import sqlite3
from dataclasses import dataclass, field

from trainshed.buckets import index
from trainshed.core.bucket import ObjectInfo, ObjectListing, ObjectQuery

_STEP = 100  # objects asked for at once where any of them may make the rest needless


def find(db: sqlite3.Connection, bucket: str, query: ObjectQuery) -> ObjectListing:
    page = _Page(query)
    low, end = page.bounds()
    if not query.delimiter:
        page.items.extend(index.walk(db, bucket, low, end, query.size + 1))
        more = len(page.items) > query.size
        del page.items[query.size :]
        return page.listing(page.items[-1].name if more else "")
    while (room := query.size - page.told) > 0:
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


@dataclass(slots=True)
class _Page:
    query: ObjectQuery
    items: list[ObjectInfo] = field(default_factory=list[ObjectInfo])
    prefixes: list[str] = field(default_factory=list[str])
    last: str = ""

    @property
    def told(self) -> int:
        return len(self.items) + len(self.prefixes)

    def bounds(self) -> tuple[bytes, bytes | None]:
        """The first name that may be told, and the first that may not."""
        query = self.query
        low = max(query.prefix.encode(), query.start.encode())
        if query.after:
            behind = len(query.prefix)
            is_prefix = query.delimiter and query.delimiter in query.after[behind:]
            after = query.after.encode()
            low = max(low, (successor(after) or after) if is_prefix else after + b"\0")
        end = successor(query.prefix.encode())
        if query.end:
            end = min(end, query.end.encode()) if end else query.end.encode()
        return low, end

    def add(self, info: ObjectInfo) -> bytes | None:
        """Tell the object or the prefix it is behind; then the name to go on with."""
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

    def listing(self, next_after: str) -> ObjectListing:
        return ObjectListing(items=tuple(self.items), prefixes=tuple(self.prefixes), next_after=next_after)


def successor(prefix: bytes) -> bytes | None:
    """The first bytes that sort behind everything with the prefix; None where there are none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
