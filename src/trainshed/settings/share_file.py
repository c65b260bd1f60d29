"""The file of shares, in TOML: read at the start, and again when it has changed.

`assembly/control.py` makes a `ShareFile` where the setting `shares` names one; the scheduler asks it at each
cycle. A wrong file stops the start of a server, with every violation. A running server keeps the shares it
has until the file is right again, and says so in its log.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeGuard, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.price_schema import MOST as MOST_MONEY
from trainshed.core.queue.share import CPUS, GPUS, MEMORY, ROOT, Share, ShareTree, share_tree
from trainshed.disk.file_mark import file_mark
from trainshed.settings.values import SettingsError, parse_size

log = logging.getLogger(__name__)

MOST_SHARES = 1000
MOST_NAME = 128  # characters of the name of a share, and of a project in one
MOST_AMOUNT = 10**18  # of anything; memory is in bytes
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6
MOST_FAULTS = 100  # told at once

_TABLES = ("nominal", "borrow", "lend", "per_user")
_WORDS = ("parent", "projects", "weight", "budget", *_TABLES)
_NAME_RULE = f"1 to {MOST_NAME} printable characters without '/'"


def read_shares(data: Mapping[str, Any], accelerators: Mapping[str, object]) -> ShareTree:
    """The tree of shares in a document. Raises Invalid with every violation."""
    faults = [
        Violation(_in_path(name), "is not known: shares are tables [share.NAME].")
        for name in data.keys() - {"share"}
    ]
    shares: list[Share] = []
    tables: object = data.get("share", {})
    if not isinstance(tables, dict):
        raise Invalid((*faults, Violation("share", "must be a table: write [share.NAME].")))
    rows = cast("dict[str, object]", tables)
    if len(rows) > MOST_SHARES:
        raise Invalid((*faults, Violation("share", f"has {len(rows)} shares: name at most {MOST_SHARES}.")))
    misnamed = [name for name in rows if not _is_name(name)]
    faults += [
        Violation(f"share.{_in_path(name)}", f"is no name of a share: take {_NAME_RULE}.")
        for name in misnamed
    ]
    for name, row in rows.items():
        if name in misnamed:
            continue
        reader = _ShareReader(name, row, accelerators, misnamed)
        shares.append(reader.share())
        faults += reader.faults
    try:
        tree = share_tree(shares)
    except Invalid as error:
        faults += _without_what_follows(error.violations, {fault.field for fault in faults})
    else:
        if not faults:
            return tree
    raise Invalid(tuple(faults[:MOST_FAULTS]))


def _without_what_follows(faults: Iterable[Violation], before: Collection[str]) -> Iterator[Violation]:
    """Those that are not told only because what is at, above or below their field could not be read."""
    above = {path for field in before for path in _paths(field)}
    for fault in faults:
        is_lost = fault.field in above or any(path in before for path in _paths(fault.field))
        if fault.field.endswith(".projects") or not is_lost:
            yield fault


def _paths(field: str) -> tuple[str, ...]:
    """The field and all that it is in, but for the table of all shares."""
    steps = field.split(".")
    return tuple(".".join(steps[:end]) for end in range(2, len(steps) + 1))


def _is_name(text: object) -> bool:
    return (
        isinstance(text, str)
        and 0 < len(text) <= MOST_NAME
        and text.isprintable()
        and text.strip() == text
        and "/" not in text
    )


def _shown(value: object) -> str:
    """A value in a message. It may be of any length and hold anything."""
    if isinstance(value, int | float) and abs(value) > MOST_AMOUNT:
        return "so large a number"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _in_path(name: str) -> str:
    return name if _is_name(name) else _shown(name)


class _ShareReader:
    """One table [share.NAME], and what is wrong with it."""

    def __init__(
        self, name: str, row: object, accelerators: Mapping[str, object], misnamed: Collection[str]
    ) -> None:
        self.name, self.accelerators, self.misnamed = name, accelerators, misnamed
        self.row: Mapping[str, object] = {}
        self.faults: list[Violation] = []
        if isinstance(row, dict):
            self.row = cast("dict[str, object]", row)
        else:
            self.faults.append(Violation(f"share.{name}", "must be a table: write [share.NAME]."))

    def share(self) -> Share:
        for word in sorted(self.row.keys() - set(_WORDS)):
            self._fault(_in_path(word), f"is not known; there are {', '.join(_WORDS)}.")
        amounts = {table: dict(self._amounts(table)) for table in _TABLES}
        return Share(
            name=self.name,
            parent=self._parent(),
            projects=tuple(dict.fromkeys(self._projects())),
            nominal=amounts["nominal"],
            borrow=amounts["borrow"],
            lend=amounts["lend"],
            per_user=amounts["per_user"],
            weight=self._weight(),
            budget=self._budget(),
        )

    def _parent(self) -> str:
        parent = self.row.get("parent", ROOT)
        if self.name == ROOT:
            if "parent" in self.row:
                self._fault("parent", f"is {_shown(parent)}, and the root is below no share: leave it out.")
            return ""
        if isinstance(parent, str) and parent in self.misnamed:
            return ROOT  # its name is told already
        if not isinstance(parent, str) or not _is_name(parent):
            self._fault("parent", f"must be the name of a share, not {_shown(parent)}.")
            return ROOT
        return parent

    def _weight(self) -> float:
        weight = self.row.get("weight", 1)
        if self.name == ROOT and "weight" in self.row:
            self._fault("weight", f"is {_shown(weight)}, and the root is beside no share: leave it out.")
        elif not _is_number(weight) or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            text = f"must be a number above 0, from {LEAST_WEIGHT:f} to {MOST_WEIGHT:g}"
            self._fault("weight", f"{text}, not {_shown(weight)}.")
        else:
            return float(weight)
        return 1

    def _budget(self) -> Decimal | None:
        budget = self.row.get("budget")
        if budget is None:
            return None
        if not _is_number(budget) or not 0 <= budget <= MOST_MONEY:
            self._fault("budget", f"must be an amount of money from 0 to {MOST_MONEY}, not {_shown(budget)}.")
            return None
        return Decimal(str(abs(budget)))  # there is a zero with a sign

    def _projects(self) -> Iterator[str]:
        projects = self.row.get("projects", [])
        if not isinstance(projects, list):
            self._fault("projects", f'must be a list of names such as ["vision"], not {_shown(projects)}.')
            return
        for project in cast("list[object]", projects):
            if isinstance(project, str) and _is_name(project) and project != "-":
                yield project
            else:
                text = (
                    f"must be a list of names of projects, each of {_NAME_RULE}; {_shown(project)} is none."
                )
                self._fault("projects", text)

    def _amounts(self, table: str) -> Iterator[tuple[str, float]]:
        rows = self.row.get(table, {})
        if not isinstance(rows, dict):
            self._fault(table, f"must be a table such as {{ gpus = 4 }}, not {_shown(rows)}.")
            return
        for item, value in cast("dict[str, object]", rows).items():
            if item not in (CPUS, MEMORY, GPUS) and item not in self.accelerators:
                known = f"{CPUS}, {MEMORY}, {GPUS} or a type of GPU, such as NVIDIA_TESLA_T4"
                self._fault(f"{table}.{_in_path(item)}", f"is no resource; there are {known}.")
            else:
                yield item, self._amount(f"{table}.{item}", item, value)

    def _amount(self, path: str, item: str, value: object) -> float:
        """0 for what is told to be wrong: that the resource is named counts all the same."""
        amount = value
        if item == MEMORY and isinstance(value, str):
            try:
                amount = parse_size(value, least=0)
            except SettingsError as error:
                self._fault(path, f"{error}.")
                return 0
        if not _is_number(amount) or not 0 <= amount <= MOST_AMOUNT:
            some = "a size such as 64GiB" if item == MEMORY else "a number from 0"
            self._fault(path, f"must be {some}, at most {MOST_AMOUNT:.0e}, not {_shown(value)}.")
            return 0
        if item not in (CPUS, MEMORY) and amount != int(amount):
            self._fault(path, f"must be a whole number, not {_shown(value)}.")
            return 0
        return amount

    def _fault(self, path: str, text: str) -> None:
        self.faults.append(Violation(f"share.{self.name}.{path}", text))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class ShareFile:
    """The shares of a file, as it is now."""

    def __init__(self, path: Path, accelerators: Mapping[str, object]) -> None:
        """Raises SettingsError where the file cannot be used."""
        self._path, self._accelerators = path, accelerators
        try:
            self._mark = file_mark(path)
            self._tree = self._read()
        except OSError as error:
            raise SettingsError(f"--shares: cannot read {path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"--shares: {path}: {error}") from error
        except Invalid as error:
            lines = "\n".join(fault.sentence for fault in error.violations)
            raise SettingsError(f"--shares: {path}:\n{lines}") from error

    def __call__(self) -> ShareTree:
        mark = file_mark(self._path)
        if mark == self._mark:
            return self._tree
        self._mark = mark
        try:
            self._tree = self._read()
        except OSError as error:
            log.warning("The file of shares %s cannot be read: %s. They stay as they are.", self._path, error)
        except (ValueError, RecursionError, Invalid) as error:
            log.warning("The file of shares %s is wrong: %s They stay as they are.", self._path, error)
        return self._tree

    def _read(self) -> ShareTree:
        import tomllib  # few servers need it

        return read_shares(tomllib.loads(self._path.read_text(encoding="utf-8")), self._accelerators)
