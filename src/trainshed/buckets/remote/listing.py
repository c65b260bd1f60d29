"""A page of what is in a remote bucket. Blocks: for threads.

Without a delimiter, in the store's own order, read only as far as the page goes; with one, the whole level is
read and sorted, because no store tells pages of it through obstore.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import obstore

from trainshed.buckets.remote.connect import Store
from trainshed.buckets.remote.names import is_plain
from trainshed.core.bucket import ObjectQuery

AT_ONCE = 1000

# Typed by hand: their stubs name types of a library that is not there.
_list = cast("Callable[..., Iterable[Any]]", getattr(obstore, "list"))  # noqa: B009
_list_level = cast("Callable[..., Any]", getattr(obstore, "list_with_delimiter"))  # noqa: B009


@dataclass(frozen=True, slots=True)
class RemotePage:
    metas: tuple[Any, ...] = ()  # obstore's, with path, size, e_tag and last_modified
    prefixes: tuple[str, ...] = ()
    next_after: str = ""


def find(store: Store, query: ObjectQuery) -> RemotePage:
    above = query.prefix.rpartition("/")[0]
    if (above and not is_plain(above)) or "\0" in query.prefix:
        return RemotePage()  # nothing here can be called so
    if query.delimiter:
        return _level(store, query, above)
    metas: list[Any] = []
    for meta in _walk(store, above, query.after):
        if not _is_asked(meta["path"], query):
            continue
        if len(metas) == query.size:
            return RemotePage(tuple(metas), (), metas[-1]["path"])
        metas.append(meta)
    return RemotePage(tuple(metas))


def _level(store: Store, query: ObjectQuery, above: str) -> RemotePage:
    entries: dict[str, Any] = {}
    if query.delimiter == "/":
        level = _list_level(store, above or None)
        entries = {meta["path"]: meta for meta in level["objects"]}
        entries |= dict.fromkeys(f"{prefix}/" for prefix in level["common_prefixes"])
    else:
        for meta in _walk(store, above, ""):
            cut = meta["path"].find(query.delimiter, len(query.prefix))
            if cut < 0:
                entries[meta["path"]] = meta
            elif meta["path"].startswith(query.prefix):
                entries[meta["path"][: cut + len(query.delimiter)]] = None
    names = sorted(
        (name for name in entries if _is_asked(name, query) and name.encode() > query.after.encode()),
        key=str.encode,
    )
    page = names[: query.size]
    return RemotePage(
        tuple(entries[name] for name in page if entries[name] is not None),
        tuple(name for name in page if entries[name] is None),
        page[-1] if len(names) > len(page) else "",
    )


def _walk(store: Store, above: str, after: str) -> Iterator[Any]:
    chunks: Iterable[Any] = _list(store, above or None, offset=after or None, chunk_size=AT_ONCE)
    for chunk in chunks:
        yield from chunk


def _is_asked(name: str, query: ObjectQuery) -> bool:
    return (
        name.startswith(query.prefix)
        and name.encode() >= query.start.encode()
        and (not query.end or name.encode() < query.end.encode())
    )
