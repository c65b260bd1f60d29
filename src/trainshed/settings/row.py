"""One row of the table of settings, and how a value is written. For `table.py`; it only describes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any


def setting(default: object, read: Callable[[str], object], metavar: str, help: str, **more: object) -> Any:
    """A row. `told`: the default in words; `flag`: where it is not the name; `many`: whether it is a list."""
    return field(default=default, metadata={"read": read, "metavar": metavar, "help": help, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str  # in Settings and in the settings file
    default: object
    read: Callable[[str], object]
    metavar: str
    help: str
    told: str = ""
    flag: str = ""
    many: bool = False

    @property
    def variable(self) -> str:
        return f"TRAINSHED_{self.name.upper()}"

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)

    @property
    def negative(self) -> str:
        """The flag that switches it off."""
        return f"--no-{self.flag.removeprefix('--')}"

    @property
    def default_words(self) -> str:
        return self.told or shown(self.default) or "none"


def shown(value: object) -> str:
    """A value as it is written, in a flag or for people; "" for none."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, timedelta):
        return f"{value / timedelta(days=1)!r}d"
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
