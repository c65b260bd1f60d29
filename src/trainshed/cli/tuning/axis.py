"""An axis of a drawing: from values to pixels, and where its ticks are. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """`start` and `end` are pixels. With `words` it has a place for each of them, and no numbers."""

    start: float
    end: float
    low: float = 0.0
    high: float = 1.0
    is_log: bool = False
    is_whole: bool = False  # its ticks are whole numbers
    words: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()  # where its ticks are; none: at round numbers

    def at(self, value: object) -> float:
        if self.words:
            last = max(1, len(self.words) - 1)
            share = self.words.index(str(value)) / last if str(value) in self.words else 0.5
            return self.start + (self.end - self.start) * share
        return self.start + (self.end - self.start) * self._share(float(str(value)))

    def _share(self, value: float) -> float:
        if self.is_log:
            low, high, value = math.log(self.low), math.log(self.high), math.log(max(value, self.low))
        else:
            low, high = self.low, self.high
        # Halved, so that the ends may be as far apart as numbers can be.
        return (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5

    def ticks(self) -> list[tuple[float, str]]:
        if self.words:
            return [(self.at(word), word) for word in self.words]
        if self.marks:
            return [(self.at(mark), f"{mark:g}") for mark in self.marks if self.low <= mark <= self.high]
        if not self.high > self.low:
            return [(self.at(self.low), f"{self.low:g}")]
        values = [value for value in self._round_values() if not self.is_whole or value.is_integer()]
        return [(self.at(value), f"{value:.5g}" if abs(value) < 1e5 else f"{value:g}") for value in values]

    def _round_values(self) -> list[float]:
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            step = max(1, (last - first) // TICKS)
            powers = [10.0**power for power in range(first, last + 1, step)]
            return powers if len(powers) > 1 else [self.low, self.high]
        rough = self.high / TICKS - self.low / TICKS
        power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 0.0
        if not power or not math.isfinite(power):
            return [self.low, self.high]
        step = next((power * factor for factor in (1, 2, 5, 10) if power * factor >= rough), power * 10)
        first = math.ceil(self.low / step - 1e-9)
        values = [round((first + at) * step, 12 - math.floor(math.log10(step))) for at in range(2 * TICKS)]
        return [value for value in values if value <= self.high + step * 1e-9] or [self.low, self.high]


def finite(values: Iterable[object]) -> list[float]:
    """Those that are numbers and have an end."""
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]


def axis_of(values: Iterable[object], start: float, end: float, *, is_log: bool = False) -> Axis:
    """An axis that has room for all the values: a number axis, or one of words."""
    seen = list(values)
    numbers = finite(seen)
    if seen and not numbers:
        words = tuple(dict.fromkeys(str(value) for value in seen))
        return Axis(start=start, end=end, words=words)
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    return Axis(start=start, end=end, low=low, high=high, is_log=is_log and low > 0)


def thinned(items: Sequence[object], most: int, kept: Iterable[int] = ()) -> list[int]:
    """The places of at most so many items, evenly spread, and of those that must be kept."""
    if len(items) <= most:
        return list(range(len(items)))
    spread = {at * (len(items) - 1) // (most - 1) for at in range(most)}
    return sorted(spread | set(kept))
