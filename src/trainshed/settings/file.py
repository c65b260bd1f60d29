"""The settings file, `trainshed.toml`: its keys as text and where each stands, for `table.py` to read.

It checks the form: which keys there are, and that each has a plain value. It never writes the file.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from trainshed.settings.values import SettingsError

NAME = "trainshed.toml"
PLAIN = (str, int, float, bool)


def read_file(file: Path, known: Mapping[str, bool]) -> dict[str, tuple[list[str], str]]:
    """Each setting's texts and where it stands, FILE:LINE. `known`: the names, and whether each is a list."""
    try:
        text = file.read_text(encoding="utf-8")
        rows = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    result: dict[str, tuple[list[str], str]] = {}
    for key, value in rows.items():
        where, name = f"{file}:{_line(text, key)}", key.replace("-", "_")
        if isinstance(value, dict):
            raise SettingsError(
                f"{where}: [{key}] is a table; settings stand at the top of the file, as name = value"
            )
        if name not in known:
            raise SettingsError(f"{where}: {key!r} is not a setting; {_hint(name, known)}")
        result[name] = _texts(key, value, where, is_list=known[name]), where
    return result


def _texts(key: str, value: object, where: str, *, is_list: bool) -> list[str]:
    is_given_as_list = isinstance(value, list)
    values: list[object] = [*cast(list[object], value)] if is_given_as_list and is_list else [value]
    for item in values:
        if not isinstance(item, PLAIN) or (is_list and not isinstance(item, str)):
            fix = f'{key} = ["A", "B"]' if is_list else f'{key} = "TEXT", a number, true or false'
            raise SettingsError(f"{where}: {key} has {_shown(item)}, which it cannot have; write {fix}")
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in values]


def _shown(value: object) -> str:
    return "a list" if isinstance(value, list) else f"the value {value}"


def _hint(name: str, known: Mapping[str, bool]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"


def _line(text: str, key: str) -> int:
    """The line on which a key, or the table of that name, is written."""
    written = re.compile(rf"""^\s*\[*\s*["']?{re.escape(key)}["']?\s*[\].=]""", re.MULTILINE)
    match = written.search(text)
    return text.count("\n", 0, match.end()) + 1 if match else 1
