"""CopyProgress: says on stderr how far slow work is, at most every few seconds."""

import sys
import time

from trainshed.cli.words import size as size_words

PAUSE = 2.0  # seconds


class CopyProgress:
    def __init__(self, verb: str, total: int) -> None:
        self._verb, self._total = verb, total
        self._done = 0
        self._next = time.monotonic() + PAUSE

    def add(self, size: int) -> None:
        self.reach(self._done + size)

    def reach(self, size: int) -> None:
        self._done = size
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PAUSE
            whole = f" of {size_words(self._total)}" if self._total else ""
            print(f"{self._verb} {size_words(self._done)}{whole}", file=sys.stderr, flush=True)
