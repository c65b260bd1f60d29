"""The file of prices that the setting `prices` names. `assembly/costs.py` makes one; costs and budgets ask.

It is read at the start, where a mistake stops the server, and again whenever the file has changed. A mistake
that comes later is logged once, and the prices from before stay valid. It never writes the file.
"""

import logging
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from trainshed.core.price_schema import FieldPath, PriceFaults, dotted, read_prices
from trainshed.core.prices import Prices
from trainshed.disk.file_mark import file_mark
from trainshed.settings.values import SettingsError

log = logging.getLogger("trainshed")

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)((?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_STEP = re.compile(r"""("[^"]*"|'[^']*'|[\w-]+)""")


class PricesFile:
    """Call it for the prices that are valid now."""

    def __init__(self, path: Path) -> None:
        """Raises SettingsError where the file cannot be used."""
        self._path = path
        self._seen = file_mark(path)
        self._prices = read_file(path)
        self.mistake = ""  # why the file as it is now is not used; empty: it is

    def __call__(self) -> Prices:
        seen = file_mark(self._path)
        if seen != self._seen:
            self._seen = seen
            try:
                self._prices, self.mistake = read_file(self._path), ""
                log.info("prices: read %s again", self._path)
            except SettingsError as error:
                self.mistake = str(error)
                log.error("%s. The prices from before stay valid.", error)
        return self._prices


def read_file(path: Path) -> Prices:
    """Raises SettingsError that names the line and the field of each mistake."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        raise SettingsError(f"--prices: cannot read {path}: {error.strerror}") from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"--prices: {path} is not TOML: {error}") from error
    try:
        return read_prices(data)
    except PriceFaults as mistakes:
        lines = (f"{path}:{_line(text, at)}: {dotted(at)} {why}" for at, why in mistakes.faults)
        raise SettingsError("--prices: " + "\n".join(lines)) from mistakes


def _line(text: str, path: FieldPath) -> int:
    """The line on which a field is written, else that of the table it should be in."""
    best, line = 0, 1
    for number, place in _places(text):
        length = len(place)
        if length > best and path[:length] == place:
            best, line = length, number
    return line


def _places(text: str) -> Iterator[tuple[int, FieldPath]]:
    """Each header and key, by the number of its line. Tables in lists are counted from 0."""
    table: FieldPath = ()
    counts: dict[FieldPath, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = ()
            names = _steps(header[2])
            for at, name in enumerate(names):
                table = (*table, name)
                if header[1] == "[[" and at == len(names) - 1:
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            yield number, table
        elif key := _KEY.match(line):
            yield number, (*table, *_steps(key[1] + key[2]))


def _steps(text: str) -> FieldPath:
    return tuple(step.strip("\"'") for step in _STEP.findall(text))
