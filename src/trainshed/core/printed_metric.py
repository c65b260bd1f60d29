"""Finds `NAME=NUMBER` and `NAME: NUMBER` in lines of output: what most programs print anyway. Pure.

`metrics/line_pattern.py` uses it, and reads the expressions that a study gives instead. Each expression here
takes time in proportion to the line: whatever it may repeat, it never gives back.
"""

import re
from collections.abc import Sequence

from trainshed.core.measurement import LONGEST_NAME, valid_step
from trainshed.core.measurement_port import PrintedValue

LONGEST_LINE = 4096  # characters that are looked at, at the end of a line: progress bars redraw one line
MOST_VALUES = 64  # in one line
_NUMBER = r"(?>[-+]?(?>(?>[0-9]++(?>\.[0-9]*+)?+|\.[0-9]++)(?>[eE][-+]?[0-9]++)?+|(?i:nan|inf(?>inity)?+)))"
_BEHIND = r"(?!\w|,[0-9])"
_BETWEEN = r"[\"']?+\s*+[=:]\s*+[\"']?+"
_BEFORE = r"(?<![\w./-])"
_ANY = re.compile(rf"{_BEFORE}([A-Za-z_][\w./-]*+){_BETWEEN}({_NUMBER}){_BEHIND}")
_STEP = re.compile(
    r"(?<![\w/])(?i:(global_step)|(step)|(epoch))[\"']?+\s*+[=:]?+\s*+[\"'\[(#]?+([0-9]{1,16}+)(?!\w|\.[0-9])"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*+[A-Za-z]")
_STEP_NAMES = frozenset({"global_step", "step", "epoch"})


class UsualLines:
    """The values in lines of the usual form. Names of any letters are found where they are wanted."""

    def __init__(self, metrics: Sequence[str]) -> None:
        unusual = [re.escape(name) for name in metrics if _ANY.fullmatch(f"{name}=0") is None and name]
        self._unusual = (
            re.compile(rf"{_BEFORE}({'|'.join(unusual)}){_BETWEEN}({_NUMBER}){_BEHIND}") if unusual else None
        )
        self._wanted = frozenset(metrics)

    def values(self, text: str) -> list[PrintedValue]:
        """The last value of each name in the line."""
        if "=" not in text and ":" not in text:
            return []
        text = plain(text)
        pairs = {match[1]: match[2] for match in _ANY.finditer(text)}
        if self._unusual is not None:
            pairs |= {match[1]: match[2] for match in self._unusual.finditer(text)}
        if not pairs:
            return []
        step = step_in(text)
        return [
            PrintedValue(name[:LONGEST_NAME], float(number), step)
            for name, number in list(pairs.items())[-MOST_VALUES:]
            if name in self._wanted or name.lower() not in _STEP_NAMES
        ]


def plain(text: str) -> str:
    """The end of a line, without colours."""
    text = text[-LONGEST_LINE:]
    return _COLOUR.sub("", text) if "\x1b" in text else text


def step_in(text: str) -> int | None:
    """The last number of a step in the line; of its global step first, of an epoch last."""
    ranked: dict[int, int] = {}
    for match in _STEP.finditer(text):
        rank = next(at for at in (1, 2, 3) if match[at])
        ranked[rank] = int(match[4])
    return valid_step(ranked[min(ranked)]) if ranked else None
