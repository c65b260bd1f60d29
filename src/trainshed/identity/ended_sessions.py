"""EndedSessions: those that somebody signed out of, in a file of the home, until they would have run out.

`SignedSessions` asks it for each request with a session. It is on the disk before somebody is told that they
are signed out. A server of which nobody signed out has no such file.
"""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from trainshed.core.errors import Unavailable
from trainshed.disk.folder_sync import write_durably

log = logging.getLogger(__name__)

MOST = 10_000  # beyond that those are forgotten first that end first


class EndedSessions:
    def __init__(self, path: Path | None = None) -> None:
        """Without a path they are in memory alone."""
        self.listeners = set[Callable[[], None]]()  # called after each end
        self._path = path
        self._ends = {} if path is None else _load(path)

    def __contains__(self, session: str) -> bool:
        return session in self._ends

    def add(self, session: str, end: datetime, now: datetime) -> None:
        """`end` is when it would have ended. Raises Unavailable where that cannot be written down."""
        ends = {**self._ends, session: int(end.timestamp())}
        left = sorted((at, known) for known, at in ends.items() if at > now.timestamp())
        self._ends = {known: at for at, known in left[-MOST:]}
        for listener in list(self.listeners):
            listener()
        if self._path is not None:
            try:
                write_durably(self._path, json.dumps(self._ends, indent=1))
            except OSError as error:
                raise Unavailable(
                    "You are signed out until the server starts again: it cannot write "
                    f"{self._path}: {error.strerror or error}."
                ) from error


def _load(path: Path) -> dict[str, int]:
    try:
        rows = cast("dict[str, Any]", json.loads(path.read_text("utf-8")))
        return {session: int(datetime.fromtimestamp(at, UTC).timestamp()) for session, at in rows.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError) as error:
        log.warning("sessions that were ended cannot be read from %s, and count again: %s", path, error)
        return {}
