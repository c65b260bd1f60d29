"""The file of shares, in TOML: read at the start, and again when it has changed.

`assembly/control.py` makes a `ShareFile` where the setting `shares` names one; the scheduler asks it at each
cycle. A wrong file stops the start of a server, with every violation. A running server keeps the shares it
has until the file is right again, and says so in its log.
"""

import logging
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from trainshed.core.errors import Invalid, Violation
from trainshed.core.share import CPUS, GPUS, MEMORY, Share, ShareTree, share_tree
from trainshed.file_mark import file_mark
from trainshed.setting_values import SettingsError, parse_size

log = logging.getLogger(__name__)

_TABLES = ("nominal", "borrow", "lend", "per_user")
_WORDS = ("parent", "projects", "weight", "budget", *_TABLES)


def read_shares(data: Mapping[str, Any], accelerators: Mapping[str, object]) -> ShareTree:
    """The tree of shares in a document. Raises Invalid with every violation."""
    faults = [
        Violation(name, "is not known: shares are tables [share.NAME].") for name in data.keys() - {"share"}
    ]
    shares: list[Share] = []
    tables: object = data.get("share", {})
    if not isinstance(tables, dict):
        raise Invalid((*faults, Violation("share", "must be a table: write [share.NAME].")))
    for name, row in cast("dict[str, object]", tables).items():
        if isinstance(row, dict):
            reader = _ShareReader(name, cast("dict[str, object]", row), accelerators)
            shares.append(reader.share())
            faults += reader.faults
        else:
            faults.append(Violation(f"share.{name}", "must be a table: write [share.NAME]."))
    if faults:
        raise Invalid(tuple(faults))
    return share_tree(shares)


class _ShareReader:
    """One table [share.NAME], and what is wrong with it."""

    def __init__(self, name: str, row: Mapping[str, object], accelerators: Mapping[str, object]) -> None:
        self.name, self.row, self.accelerators = name, row, accelerators
        self.faults: list[Violation] = []

    def share(self) -> Share:
        for word in sorted(self.row.keys() - set(_WORDS)):
            self._fault(word, f"is not known; there are {', '.join(_WORDS)}.")
        parent, weight = self.row.get("parent", "root"), self.row.get("weight", 1)
        if not isinstance(parent, str):
            self._fault("parent", f"must be the name of a share, not {parent!r}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            self._fault("weight", f"must be a number above 0, not {weight!r}.")
            weight = 1
        amounts = {table: dict(self._amounts(table)) for table in _TABLES}
        return Share(
            name=self.name,
            parent=str(parent),
            projects=tuple(self._projects()),
            nominal=amounts["nominal"],
            borrow=amounts["borrow"],
            lend=amounts["lend"],
            per_user=amounts["per_user"],
            weight=float(weight),
            budget=self._budget(),
        )

    def _budget(self) -> Decimal | None:
        budget = self.row.get("budget")
        if budget is None:
            return None
        if isinstance(budget, bool) or not isinstance(budget, int | float) or not 0 <= budget < float("inf"):
            self._fault("budget", f"must be an amount of money from 0, not {budget!r}.")
            return None
        return Decimal(str(budget))

    def _projects(self) -> Iterator[str]:
        projects = self.row.get("projects", [])
        for project in cast("list[object]", projects) if isinstance(projects, list) else [projects]:
            if isinstance(project, str) and project:
                yield project
            else:
                self._fault("projects", f"must be a list of names of projects; {project!r} is none.")

    def _amounts(self, table: str) -> Iterator[tuple[str, float]]:
        rows = self.row.get(table, {})
        if not isinstance(rows, dict):
            self._fault(table, f"must be a table such as {{ gpus = 4 }}, not {rows!r}.")
            return
        for item, value in cast("dict[str, object]", rows).items():
            if item not in (CPUS, MEMORY, GPUS) and item not in self.accelerators:
                known = f"{CPUS}, {MEMORY}, {GPUS} or a type of GPU, such as NVIDIA_TESLA_T4"
                self._fault(f"{table}.{item}", f"is no resource; there are {known}.")
            elif (amount := self._amount(f"{table}.{item}", item, value)) is not None:
                yield item, amount

    def _amount(self, path: str, item: str, value: object) -> float | None:
        if item == MEMORY and isinstance(value, str):
            try:
                return parse_size(value)
            except SettingsError as error:
                self._fault(path, f"{error}.")
                return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            some = "a size such as 64GiB" if item == MEMORY else "a number from 0"
            self._fault(path, f"must be {some}, not {value!r}.")
            return None
        if item not in (CPUS, MEMORY) and value != int(value):
            self._fault(path, f"must be a whole number, not {value!r}.")
            return None
        return value

    def _fault(self, path: str, text: str) -> None:
        self.faults.append(Violation(f"share.{self.name}.{path}", text))


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
