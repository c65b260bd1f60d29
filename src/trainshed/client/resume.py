"""Reads a stream to its end, however often it breaks off: asks again behind the last entry that came."""

import time

from trainshed.client.errors import ApiError, Interrupted, Unreachable

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from trainshed.client.connection import Connection
    from trainshed.client.errors import ClientError

    Entry = TypeVar("Entry")

PATIENCE = 60.0  # seconds a follower goes on trying to reach a server that went away


class RetryBudget:
    """How long to go on asking while nothing answers: longer pauses each time, and an end."""

    def __init__(self) -> None:
        self._left = PATIENCE
        self._pause = 0.05

    def restore(self) -> None:
        self._left = PATIENCE
        self._pause = 0.05

    def spend(self, error: "ClientError") -> None:
        if self._left <= 0:
            raise error
        time.sleep(self._pause)
        self._left -= self._pause
        self._pause = min(2.0, self._pause * 2)


def resumed(
    connection: "Connection",
    path_behind: "Callable[[str], str]",
    entries: "Callable[[Iterable[bytes]], Iterator[tuple[str, Entry]]]",
    after: str = "",
) -> "Iterator[Entry]":
    """What the stream's entries hold. Each has an id, and `path_behind` an id is where to go on behind it."""
    patience = RetryBudget()
    reached = False
    while True:
        try:
            for identity, entry in entries(connection.pieces(path_behind(after))):
                after = identity
                reached = True
                patience.restore()
                yield entry
            return
        except Unreachable as error:
            if not reached:
                raise
            patience.spend(error)
        except Interrupted as error:
            reached = True
            patience.spend(error)
        except ApiError as error:
            if error.code != 503:
                raise
            patience.spend(error)
