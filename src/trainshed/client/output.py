"""Cuts the answer of customJobs:output into its frames: a line of JSON, then as many bytes as it says."""

from trainshed.client.errors import ClientError, Interrupted
from trainshed.client.notation import loads

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainshed.client.connection import Json

LONGEST_HEAD = 1 << 16


def frames(pieces: "Iterable[bytes]") -> "Iterator[tuple[str, tuple[Json, bytes]]]":
    """Whole frames only, each with the place behind it. Raises Interrupted where the last one is missing."""
    coming = iter(pieces)
    buffer = bytearray()
    while True:
        while (end := buffer.find(b"\n")) < 0:
            if len(buffer) > LONGEST_HEAD:
                raise ClientError("the server's answer is not in the form of a job's output")
            _fill(buffer, coming)
        line = bytes(buffer[:end])
        del buffer[: end + 1]
        if not line:
            continue  # said only to show that the server is there
        head: Json = loads(line)
        if head.get("end"):
            for _ in coming:
                pass
            return
        size: int = head["size"]
        while len(buffer) < size:
            _fill(buffer, coming)
        data = bytes(buffer[:size])
        del buffer[:size]
        yield head["next"], (head, data)


def _fill(buffer: bytearray, coming: "Iterator[bytes]") -> None:
    piece = next(coming, None)
    if piece is None:
        raise Interrupted("the output broke off before its end")
    buffer += piece
