"""Finds metrics in lines of output by the expression that a study gives, or in the usual form.

The assembly hands `printed_metrics` to the reader of measurements. Expressions are compiled by RE2, which
takes time in proportion to the line: Python's own engine may take years for one line.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.tuning.measurement import LONGEST_NAME, valid_step
from trainshed.core.tuning.measurement_port import PrintedMetrics, PrintedValue
from trainshed.core.tuning.printed_metric import UsualLines, plain, step_in

MOST_PATTERN = 1000  # characters
_MOST_MEMORY = 1024 * 1024  # bytes for one expression
_GROUP = re.compile(r"\(\?P?<(name|value|step)>")


def printed_metrics(pattern: str, metrics: Sequence[str]) -> PrintedMetrics:
    """Raises Invalid where the pattern is not understood, or does not say what the value is."""
    return _PatternLines(pattern, metrics) if pattern else UsualLines(metrics)


class _PatternLines:
    def __init__(self, pattern: str, metrics: Sequence[str]) -> None:
        groups = set(_GROUP.findall(pattern))
        if len(pattern) > MOST_PATTERN or "\n" in pattern:
            raise _refusal(f"must be one line of at most {MOST_PATTERN} characters.")
        if "value" not in groups:
            raise _refusal("must have a group (?P<value>…) around the number.")
        if "name" not in groups and len(metrics) != 1:
            raise _refusal("must have a group (?P<name>…) around the name, as there is more than one metric.")
        self._metrics = frozenset(metrics)
        self._name = "" if "name" in groups else metrics[0]
        self._has_step = "step" in groups
        self._pattern = _compiled(pattern)

    def values(self, text: str) -> list[PrintedValue]:
        text = plain(text)
        pairs: dict[str, PrintedValue] = {}
        for match in self._pattern.finditer(text):
            value, step = _float(match.group("value")), None
            name = self._named(match)
            if name not in self._metrics or value is None:
                continue
            if self._has_step:
                step = valid_step(_float(match.group("step")))
            pairs[name] = PrintedValue(name, value, step_in(text) if step is None else step)
        return list(pairs.values())

    def names(self, text: str) -> list[str]:
        names = dict.fromkeys(self._named(match) for match in self._pattern.finditer(plain(text)))
        return [name for name in names if name]

    def _named(self, match: Any) -> str:
        return self._name or (match.group("name") or "").strip()[:LONGEST_NAME]


def _compiled(pattern: str) -> Any:
    try:
        re2: Any = import_module("re2")  # here, since it takes memory and few need it
    except ImportError as error:
        raise Unavailable("A pattern needs the package google-re2, which is not installed.") from error
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        # The older engine knows only the longer way to name a group.
        return re2.compile(re.sub(r"\(\?<(?=name|value|step)", "(?P<", pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise _refusal(f"cannot be understood: {text[:200]}.") from error
    except UnicodeEncodeError as error:
        raise _refusal("must be valid text.") from error


def _refusal(sentence: str) -> Invalid:
    return Invalid((Violation("study_spec.metric_pattern", sentence),))


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text and len(text) <= LONGEST_NAME else None
    except ValueError:
        return None
