"""What was asked, what was answered, and when: the record a checker judges by.

Times are of the machine's steady counter, the same for all processes, so that what a program wrote down can
be compared with what a client was told. Appending is safe from any thread; nothing is ever changed.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened between `begun` and `at` (nanoseconds)."""

    what: str  # submit, cancel, delete, list, get, follow, kill-server, kill-run, ...
    outcome: str  # ok, refused, lost (nobody knows whether it was done), ...
    job: str = ""  # the job's id, where it is about one
    key: str = ""  # the idempotency key of a submit
    begun: int = 0
    at: int = 0
    data: dict[str, Any] = field(default_factory=dict[str, Any])


class History:
    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._lock = threading.Lock()

    def add(
        self, what: str, outcome: str, *, job: str = "", key: str = "", begun: int = 0, **data: Any
    ) -> None:
        at = now()
        fact = Fact(what=what, outcome=outcome, job=job, key=key, begun=begun or at, at=at, data=data)
        with self._lock:
            self._facts.append(fact)

    def facts(self, what: str = "", outcome: str = "") -> Iterator[Fact]:
        with self._lock:
            facts = list(self._facts)
        return (f for f in facts if what in ("", f.what) and outcome in ("", f.outcome))

    def save(self, path: Path) -> None:
        path.write_text("".join(json.dumps(asdict(fact)) + "\n" for fact in self.facts()))


def now() -> int:
    return time.monotonic_ns()
