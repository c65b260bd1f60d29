"""Finds `NAME=NUMBER` and `NAME: NUMBER` in lines of output: what most programs print anyway. Pure.

`metrics/line_pattern.py` uses it, and reads the expressions that a study gives instead. Each expression here
takes time in proportion to the line: whatever it may repeat, it never gives back.
"""

import re
from collections.abc import Sequence

from trainshed.core.tuning.measurement import LONGEST_NAME, valid_step
from trainshed.core.tuning.measurement_port import PrintedValue

LONGEST_LINE = 4096  # characters that are looked at, at the end of a line: progress bars redraw one line
_NUMBER = r"(?>[-+]?(?>(?>[0-9]++(?>\.[0-9]*+)?+|\.[0-9]++)(?>[eE][-+]?[0-9]++)?+|(?i:nan|inf(?>inity)?+)))"
_BEHIND = r"(?!\w|,[0-9])"
_BETWEEN = r"[\"']?+\s*+[=:]\s*+[\"']?+"
_ANY = re.compile(rf"(?<![\w./-])([A-Za-z_][\w./-]*+){_BETWEEN}{_NUMBER}{_BEHIND}")
# Each begins with plain letters, which are searched for quickly; what is before them is looked at then.
_STEPS = tuple(
    (
        word,
        re.compile(rf"{word}(?<![\w/]{word})[\"']?+\s*+[=:]?+\s*+[\"'\[(#]?+([0-9]{{1,16}}+)(?!\w|\.[0-9])"),
    )
    for word in ("global_step", "step", "epoch")
)
_STEP_NAMES = frozenset(word for word, _ in _STEPS)
_COLOUR = re.compile(r"\x1b\[[0-9;]*+[A-Za-z]")


class UsualLines:
    """The values in lines of the usual form."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._metrics = {name: _pattern(name) for name in metrics if name}

    def values(self, text: str) -> list[PrintedValue]:
        wanted = [name for name in self._metrics if name in text]
        if not wanted:
            return []  # most lines
        text = plain(text)
        numbers = {name: match[-1] for name in wanted if (match := self._metrics[name].findall(text))}
        step = step_in(text) if numbers else None
        return [PrintedValue(name, float(number), step) for name, number in numbers.items()]

    def names(self, text: str) -> list[str]:
        if "=" not in text and ":" not in text:
            return []
        names = dict.fromkeys(match[1][:LONGEST_NAME] for match in _ANY.finditer(plain(text)))
        return [name for name in names if name.lower() not in _STEP_NAMES or name in self._metrics]


def plain(text: str) -> str:
    """The end of a line, without colours."""
    text = text[-LONGEST_LINE:]
    return _COLOUR.sub("", text) if "\x1b" in text else text


def step_in(text: str) -> int | None:
    """The last number of a step in the line; of its global step first, of an epoch last."""
    lowered = text.lower()
    for word, pattern in _STEPS:
        if word in lowered and (numbers := pattern.findall(lowered)):
            return valid_step(int(numbers[-1]))
    return None


def _pattern(name: str) -> re.Pattern[str]:
    literal = re.escape(name)
    return re.compile(rf"{literal}(?<![\w./-]{literal}){_BETWEEN}({_NUMBER}){_BEHIND}")
