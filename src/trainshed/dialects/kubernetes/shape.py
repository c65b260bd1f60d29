"""Which fields a Kubernetes manifest may have, and whether each is used, ignored or refused.

The table is `shape.toml`, which the command line reads too. Faults are collected with their paths.
Each ignored field gives a sentence. The meaning of the fields is in `job.py`, `machine.py` and `volume.py`.
"""

import difflib
import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trainshed.wire.faults import Faults, join
from trainshed.wire.scalars import kind_of, read_text

_FILE = Path(__file__).with_name("shape.toml")
IGNORED, REFUSED = "~", "!"
_EMPTY: tuple[object, ...] = (None, "", [], {})  # not 0 and false, which are equal
_KINDS = {"text": str, "flag": bool, "number": int}


@dataclass(frozen=True, slots=True)
class ManifestField:
    kind: str
    mark: str = ""
    why: str = ""


@functools.cache
def shapes() -> Mapping[str, Mapping[str, ManifestField]]:
    """The fields of each kind of thing, by name."""
    tables: Mapping[str, Mapping[str, str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: {field: _field(text) for field, text in fields.items()} for name, fields in tables.items()}


def _field(text: str) -> ManifestField:
    mark = text[0] if text[0] in (IGNORED, REFUSED) else ""
    kind, _, why = text.removeprefix(mark).partition(" ")
    return ManifestField(kind, mark, why)


def check(document: object, shape: str, path: str, faults: Faults) -> Iterator[str]:
    """Yields one sentence for each ignored field. Violations go to `faults`."""
    if not isinstance(document, Mapping):
        faults.lose(path, f"must be an object of fields, not {kind_of(document)}.")
        return
    known = shapes()[shape]
    for name, value in cast("Mapping[str, object]", document).items():
        where, field = join(path, str(name)), known.get(name)
        if field is None:
            near = difflib.get_close_matches(str(name)[:64], list(known), n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            faults.add(where, f"is not a field of a {shape}{hint}")
        elif value in _EMPTY or (value is False and field.kind == "flag"):
            continue
        elif field.mark == REFUSED:
            faults.add(where, f"cannot be had: {field.why}.")
        elif field.mark == IGNORED:
            yield f"{where} is ignored: {field.why}."
        else:
            yield from _check_value(value, field.kind, where, faults)


def _check_value(value: object, kind: str, where: str, faults: Faults) -> Iterator[str]:
    match kind:
        case "text" | "flag" | "number":
            if not isinstance(value, _KINDS[kind]) or (kind == "number" and isinstance(value, bool)):
                faults.lose(where, _wanted(kind, value))
            elif isinstance(value, str):
                _check_text(value, where, faults)
        case "amount":
            if not isinstance(value, int | float | str) or isinstance(value, bool):
                faults.lose(where, _wanted(kind, value))
        case "texts":
            for number, item in enumerate(_listed(value, where, faults)):
                yield from _check_value(item, "text", f"{where}[{number}]", faults)
        case "map" | "amounts":
            if not isinstance(value, Mapping):
                faults.lose(where, f"must be an object of names and texts, not {kind_of(value)}.")
                return
            inner = "text" if kind == "map" else "amount"
            for name, item in cast("Mapping[str, object]", value).items():
                _check_text(str(name), where, faults)
                yield from _check_value(item, inner, join(where, str(name)), faults)
        case "manifest":  # `manifest.py` checks it by its own kind
            if not isinstance(value, Mapping):
                faults.lose(where, f"must be an object of fields, not {kind_of(value)}.")
        case _ if kind.startswith("["):
            for number, item in enumerate(_listed(value, where, faults)):
                yield from check(item, kind[1:-1], f"{where}[{number}]", faults)
        case _:
            yield from check(value, kind, where, faults)


def _check_text(value: str, where: str, faults: Faults) -> None:
    try:
        read_text(value)
    except ValueError as error:
        faults.lose(where, str(error))


def _listed(value: object, where: str, faults: Faults) -> list[object]:
    if isinstance(value, list):
        return cast("list[object]", value)
    faults.lose(where, f"must be a list, not {kind_of(value)}.")
    return []


def _wanted(kind: str, value: object) -> str:
    if kind == "text":
        if isinstance(value, int | float):
            literal = str(value).lower() if isinstance(value, bool) else value
            return f'must be text; write it in quotes: "{literal}".'
        return f"must be text, not {kind_of(value)}."
    words = {"flag": "true or false", "number": "a whole number", "amount": "a number, or one with a unit"}
    return f"must be {words[kind]}, not {kind_of(value)}."


# The functions below treat a value of a wrong type as absent: `check` has reported it.


def part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = whole.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def parts(whole: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of a list, in place. Any other item becomes an empty object."""
    value = whole.get(name)
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {} for item in listed]


def texts(whole: Mapping[str, Any], name: str) -> list[str]:
    value = whole.get(name)
    return [str(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


def text(whole: Mapping[str, Any], name: str) -> str:
    value = whole.get(name)
    return value if isinstance(value, str) else ""


def number(whole: Mapping[str, Any], name: str) -> int | None:
    value = whole.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
