"""The rows of the data file, and of a file of the operator's beside it.

The shipped file is part of the code: a mistake in it just raises. The operator's is read at every start, and
each mistake in it is a sentence. Nothing here looks for an interpreter or builds anything.
"""

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.requirements import normal

_FILE = Path(__file__).parents[1] / "data" / "runtimes.toml"
_NAME = re.compile(r"[a-z0-9]+(?:[._/-][a-z0-9]+)*")
_VERSION = re.compile(r"\d+(?:\.\d+)*[A-Za-z0-9.+]*")
_TEXTS = ("requirements", "pythons", "extra_indexes", "google", "images", "imports")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeRow:
    name: str
    version: str = ""
    requirements: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    python: str = ""
    index: str = ""
    extra_indexes: tuple[str, ...] = ()
    google: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


@functools.cache
def shipped_rows() -> tuple[RuntimeRow, ...]:
    return read_rows(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def load_rows(own: Path | None) -> tuple[RuntimeRow, ...]:
    """The shipped rows, with those of the operator's file in their place or beside them."""
    if own is None:
        return shipped_rows()
    try:
        data = tomllib.loads(own.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Invalid((Violation("runtimes", f"The file {own} cannot be read: {error}."),)) from error
    try:
        rows = read_rows(data)
    except ValueError as error:
        raise Invalid((Violation("runtimes", f"The file {own} is wrong: {error}."),)) from error
    merged = {(row.name, row.version): row for row in shipped_rows()}
    merged.update(((row.name, row.version), row) for row in rows)
    return tuple(merged.values())


def read_rows(data: Mapping[str, Any]) -> tuple[RuntimeRow, ...]:
    if unknown := data.keys() - {"runtimes"}:
        raise ValueError(f"'{min(unknown)}' is not known; there are only tables [[runtimes]]")
    rows: object = data.get("runtimes", [])
    if not isinstance(rows, list):
        raise ValueError("runtimes must be tables, each written as [[runtimes]]")
    return tuple(_row(f"runtime {number}", row) for number, row in enumerate(cast("list[object]", rows), 1))


def _row(where: str, row: object) -> RuntimeRow:
    if not isinstance(row, dict):
        raise ValueError(f"{where} is not a table")
    given = cast("dict[str, object]", row)
    if unknown := given.keys() - {field.name for field in fields(RuntimeRow)}:
        raise ValueError(f"{where} has an unknown word '{min(unknown)}'")
    read = {name: _value(where, name, value) for name, value in given.items()}
    if not _NAME.fullmatch(read.get("name", "")):
        raise ValueError(f"{where} needs a name such as team/pytorch, in small letters")
    if read["name"] == "trainshed/python":
        raise ValueError(f"{where} may not be called trainshed/python: that is the server's own interpreter")
    if read.get("version") and not _VERSION.fullmatch(read["version"]):
        raise ValueError(f"version of {where} must be such as 2.13.0, not '{read['version']}'")
    read["requirements"] = normal(read.get("requirements", ()))
    return RuntimeRow(**read)


def _value(where: str, name: str, value: object) -> Any:
    if name not in _TEXTS:
        if not isinstance(value, str):
            raise ValueError(f"{name} of {where} must be a text")
        return value
    texts = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name} of {where} must be a list of texts")
    return tuple(texts)
