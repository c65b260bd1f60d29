"""The server's clock: UTC that never runs backwards and does not follow a jump of the wall clock.

Timeouts count by it, so an administrator's typing error must not end every job. It counts on from an
anchor (a wall time and the reading of a steady counter) kept in a small file, so that a restarted server
goes on counting where the one before stood. A small difference to the wall clock is made up for gently; a
large one is reported and not followed. After a reboot the counter starts anew and so does the anchor. It
never sleeps and never blocks, but for the rare writing of the anchor.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

log = logging.getLogger(__name__)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000_000
FOLLOWED = 5 * SECOND  # what time servers correct in passing; more is somebody setting the clock
GENTLY = 10  # make up for one tenth of the time that passes: 5 s take 50 s, and time never stands still
UNSAVED = SECOND // 20  # less than a server needs to start, so that a restart never turns time back


@dataclass(frozen=True, slots=True)
class Sources:
    """Where time comes from. `boot_id` is "" where boots cannot be told apart."""

    wall_ns: Callable[[], int]
    steady_ns: Callable[[], int]
    boot_id: Callable[[], str]


def _steady_ns() -> int:
    return time.clock_gettime_ns(_STEADY)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


# CLOCK_BOOTTIME goes on while the machine sleeps, as the wall does.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
SYSTEM = Sources(time.time_ns, _steady_ns, _boot_id)


class SteadyClock:
    """Implements `core.ports.Clock`. May be asked from any thread."""

    def __init__(self, anchor: Path, sources: Sources = SYSTEM) -> None:
        self._path = anchor
        self._sources = sources
        self._boot = sources.boot_id()
        self._lock = Lock()
        self._reported: int | None = None  # the size of the jump last reported
        self._unsaved = 0  # corrections since the anchor was written
        steady, wall = sources.steady_ns(), sources.wall_ns()
        offset = self._load(steady)
        self._offset = wall - steady if offset is None else offset  # wall time minus counter
        self._last = steady
        if offset is None:
            self._save(steady)

    def now(self) -> datetime:
        with self._lock:
            steady = max(self._sources.steady_ns(), self._last)
            self._follow(self._sources.wall_ns() - steady - self._offset, steady - self._last)
            self._last = steady
            if abs(self._unsaved) >= UNSAVED:
                self._save(steady)
            microseconds = (steady + self._offset) // 1000
        return EPOCH + timedelta(microseconds=microseconds)

    def _follow(self, drift: int, passed: int) -> None:
        """Move towards the wall by at most a tenth of what has passed: forwards faster, backwards slower."""
        if abs(drift) > FOLLOWED:
            if self._reported is None or abs(drift - self._reported) > FOLLOWED:
                self._report(drift)
            return
        self._reported = None
        most = passed // GENTLY
        correction = max(-most, min(most, drift))
        self._offset += correction
        self._unsaved += correction

    def _report(self, drift: int) -> None:
        self._reported = drift
        log.warning(
            "The machine's clock has jumped %s by %.1f s. Jobs go on by the time counted so far; to take "
            "over the new time, stop the server, remove %s and start it again.",
            "forwards" if drift > 0 else "backwards",
            abs(drift) / SECOND,
            self._path,
        )

    def _load(self, steady: int) -> int | None:
        """The offset kept by an earlier server of the same boot."""
        try:
            kept = json.loads(self._path.read_text("ascii"))
            boot, wall, counter = str(kept["boot_id"]), int(kept["wall_ns"]), int(kept["boottime_ns"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("The clock's anchor %s cannot be read (%s); it is made anew", self._path, error)
            return None
        if not boot or boot != self._boot or counter > steady:
            return None
        return wall - counter

    def _save(self, steady: int) -> None:
        self._unsaved = 0
        kept = {"boot_id": self._boot, "wall_ns": steady + self._offset, "boottime_ns": steady}
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(kept), "ascii")
            temporary.replace(self._path)
        except OSError as error:
            # Time goes on without it; only a restart would start from the wall clock.
            log.warning("The clock's anchor %s cannot be written: %s", self._path, error)
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
