"""Whether stores take objects: one is put into each bucket, read, and removed. Blocks: for threads."""

from collections.abc import Iterable

import obstore

from trainshed.buckets.remote.connect import connect
from trainshed.buckets.remote.rows import Remote
from trainshed.buckets.remote.trouble import translated
from trainshed.core.errors import Unavailable

NAME = "trainshed-was-here"
CONTENT = b"is it up?" * 100  # nothing would be kept with the names, and say nothing of where bytes are


def probe(remotes: Iterable[Remote]) -> None:
    for remote in remotes:
        with translated(f"{remote.kind.value}://{remote.name}"):
            store = connect(remote)
            obstore.put(store, NAME, CONTENT)
            if bytes(obstore.get(store, NAME).bytes()) != CONTENT:
                raise Unavailable(f"{remote.kind.value}://{remote.name} does not give what was put there.")
            obstore.delete(store, NAME)
