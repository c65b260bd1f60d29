"""Reads server-sent events as customJobs:watch sends them."""

from trainshed.client.connection import lines
from trainshed.client.errors import Interrupted
from trainshed.client.notation import loads

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainshed.client.connection import Json


def hints(pieces: "Iterable[bytes]", after: str = "") -> "Iterator[tuple[str, Json]]":
    """What each event says, with the id behind which to go on; an event without one has that of the last.

    Hints have no end. Raises Interrupted where they stop.
    """
    for line in lines(pieces):
        field, _, value = line.partition(b": ")
        if field == b"id":
            after = value.decode()
        elif field == b"data":
            yield after, loads(value)
    raise Interrupted("the server has ended its hints")
