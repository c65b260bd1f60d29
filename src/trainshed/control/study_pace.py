"""StudyPace: how soon a study is looked at after a trial of it has reported. `control/studies.py` uses it.

The first report after a rest is acted upon at once. While reports keep coming there is a gap between two
looks, and a longer one where a look takes long: a large study takes a small part of a core. No hint is lost:
one that comes during a turn makes another one, after the gap.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

GAP, MOST_GAP = 0.2, 2.0  # seconds between two looks
REST = 10  # the gap is so many times as long as the look before it was


@dataclass(slots=True)
class StudyPace:
    """The turns of a study call `begin`, `look` and `end`."""

    turn_within: Callable[[float], None]  # called with seconds
    _gap: float = GAP
    _due: float = 0.0  # the event loop's time of the next turn that a hint may cause
    _is_turning: bool = False
    _is_asked: bool = False  # there was a hint during the turn

    def hint(self) -> None:
        if self._is_turning:
            self._is_asked = True
        else:
            self.turn_within(max(0.0, self._due - _now()))

    def begin(self) -> None:
        self._is_turning, self._is_asked = True, False

    @contextlib.contextmanager
    def look(self) -> Generator[None]:
        """Around each reading of what trials reported, with the decision and the write that follow."""
        began = _now()
        yield
        self._gap = min(MOST_GAP, max(GAP, REST * (_now() - began)))

    def end(self) -> float | None:
        """In how many seconds the next turn should be, where a hint came during this one."""
        self._due, self._is_turning = _now() + self._gap, False
        return self._gap if self._is_asked else None


def _now() -> float:
    return asyncio.get_running_loop().time()
