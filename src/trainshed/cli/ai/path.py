"""A key of gcloud's formats, filters, orders: `jobSpec.workerPoolSpecs[0].replicaCount`, `name.basename()`.

snake_case and camelCase name the same field. A list without a number means each of its elements.
"""

import re
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any, cast

from trainshed.cli.failure import Misuse
from trainshed.cli.words import moment

_STEP = re.compile(r"\.?(?:(?P<call>\w+)\((?P<with>[^)]*)\)|(?P<name>[\w-]+|\"[^\"]*\")|\[(?P<at>-?\d*)\])")


def _segment(value: Any, which: str) -> str:
    parts = str(value).split("/")
    try:
        return parts[int(which or -1)]
    except (IndexError, ValueError):
        return ""


def _date(value: Any, settings: str) -> str:
    """`date()`, `date('%H:%M')`, `date(format='%H:%M')`, with `tz=LOCAL` for the time on this wall."""
    at = moment(value)
    if at is None:
        return ""
    form = "%Y-%m-%dT%H:%M:%S"
    for part in filter(None, map(str.strip, settings.split(","))):
        name, equals, text = part.partition("=")
        if equals and name == "tz":
            at = at.astimezone() if text.strip("'\"").upper() == "LOCAL" else at
        else:
            form = (text if equals and name == "format" else part).strip("'\"")
    return at.strftime(form)


CALLS: dict[str, Callable[[Any, str], Any]] = {
    "basename": lambda value, _: str(value).rsplit("/", 1)[-1],
    "segment": _segment,
    "date": _date,
    "len": lambda value, _: len(cast(Sized, value)) if isinstance(value, list | dict | str) else 0,
    "list": lambda value, _: ",".join(map(str, cast(list[Any], value))) if isinstance(value, list) else value,
}


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    steps: tuple[str | int | None, ...]  # a field's name, an element's number, or None for every element
    calls: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Path":
        steps: list[str | int | None] = []
        calls: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            match = _STEP.match(text, at)
            if match is None or (match["call"] is None and calls):
                raise Misuse(
                    f"[{text}] is not a key; one reads like displayName or jobSpec.workerPoolSpecs[0]"
                )
            at = match.end()
            if match["call"] is not None:
                if match["call"] not in CALLS:
                    raise Misuse(f"there is no transform {match['call']}(); there are {', '.join(CALLS)}")
                calls.append((match["call"], match["with"]))
            elif match["at"] is not None:
                steps.append(int(match["at"]) if match["at"] else None)
            else:
                steps.append(match["name"].strip('"'))
        return cls(text, tuple(steps), tuple(calls))

    @property
    def label(self) -> str:
        """The column's header: displayName is DISPLAY_NAME."""
        names = [step for step in self.steps if isinstance(step, str)]
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", names[-1] if names else self.text).upper()

    def get(self, whole: Any) -> Any:
        """What is there; None where there is nothing."""
        value = _walk(whole, self.steps)
        for name, argument in self.calls:
            value = value if value is None else CALLS[name](value, argument)
        return value

    def order(self, whole: Any) -> tuple[int, float, str]:
        """For sorting values of any kind: nothing first, then numbers, then text."""
        value = self.get(whole)
        if value is None:
            return 0, 0.0, ""
        try:
            return 1, float(value), ""
        except (TypeError, ValueError):
            return 2, 0.0, str(value)


def _walk(value: Any, steps: tuple[str | int | None, ...]) -> Any:
    for at, step in enumerate(steps):
        if isinstance(value, list):
            items = cast(list[Any], value)
            if isinstance(step, int):
                value = items[step] if -len(items) <= step < len(items) else None
                continue
            rest = steps[at + 1 :] if step is None else steps[at:]
            values = [_walk(item, rest) for item in items]
            return [element for element in values if element is not None]
        if not isinstance(value, dict) or not isinstance(step, str):
            return None
        value = _field(cast(dict[str, Any], value), step)
    return value


def _field(fields: dict[str, Any], name: str) -> Any:
    if name in fields:
        return fields[name]
    folded = name.replace("_", "").lower()
    return next((value for key, value in fields.items() if key.replace("_", "").lower() == folded), None)
