"""TokenUses: on which day each token of an account was last used, in a file of the home.

`AccountTokens` notes each use, and `service/accounts.py` tells people. It is information: a file that is
damaged or cannot be written keeps nobody out. A request costs a look into a dictionary. The first use of a
token on a day is written by a thread of its own, so no request waits for the disk.
"""

import json
import logging
from collections.abc import Callable, Collection
from datetime import date, datetime
from pathlib import Path
from threading import Lock, Thread
from typing import Any, cast

from trainshed.disk.folder_sync import write_durably

log = logging.getLogger(__name__)


class TokenUses:
    def __init__(self, path: Path, known: Callable[[], Collection[str]]) -> None:
        """`known` gives the ids of the tokens that there are: the file has no others for long."""
        self._path, self._known = path, known
        self._days = _load(path)
        self._lock = Lock()  # one write at a time: the last has all

    def note(self, id: str, now: datetime) -> None:
        """The token was used. Days are those of UTC."""
        day = now.date()
        if self._days.get(id) != day:
            self._days[id] = day
            Thread(target=self._write, name="token-uses", daemon=True).start()

    def last_day(self, id: str) -> date | None:
        return self._days.get(id)

    def _write(self) -> None:
        with self._lock:
            known = self._known()
            days = {id: str(day) for id, day in self._days.copy().items() if id in known}
            try:
                write_durably(self._path, json.dumps(days, indent=1))
            except OSError as error:
                log.warning("the last uses of tokens cannot be written to %s: %s", self._path, error)


def _load(path: Path) -> dict[str, date]:
    try:
        rows = cast("dict[str, Any]", json.loads(path.read_text("utf-8")))
        return {id: date.fromisoformat(day) for id, day in rows.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("the last uses of tokens cannot be read from %s: %s", path, error)
        return {}
