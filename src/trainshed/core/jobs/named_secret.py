"""Secrets of a project, known by name: what is told of one, how a job refers to it, and who keeps them. Pure.

A variable of a job whose value is `secret://NAME` gets the value of that secret at each launch. One whose
value is `secret-file://NAME` gets the path of a file that has it. The reference is no secret: jobs store it,
answers show it, and clients that know only `name` and `value` pass it on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

SCHEME, FILE_SCHEME = "secret://", "secret-file://"
MOST_VALUE = 65_536  # bytes, as Secret Manager has it
NAME_RULE = "1 to 200 letters, digits, '-', '_' and '.', a letter or digit first"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSecret:
    """All that anybody is told of a secret: never its value."""

    project: str
    id: str
    created_at: datetime
    created_by: str = ""  # the user's name as the client gave it; empty: not known
    version: int = 0  # counts the values that were set; 0: it has none yet
    updated_at: datetime | None = None  # when the value was set
    updated_by: str = ""
    used_at: datetime | None = None  # when a launch last took the value, to the minute

    @property
    def name(self) -> str:
        return f"projects/{self.project}/secrets/{self.id}"


class NamedSecretStore(Protocol):
    """1. what `create`, `set` and `remove` have returned from is durable.

    2. `value` is what was set last. Of a secret that is not there, or has no value, it raises NotFound.
    3. `rotate` seals all values, those of jobs too, with a new key. A process that dies in it loses nothing.
    4. where values are there and cannot be read, methods raise Unavailable with what is missing.
    """

    async def create(self, secret: NamedSecret) -> None:
        """Raises AlreadyExists."""
        ...

    async def set(self, project: str, secret: str, value: str, now: datetime, by: str) -> NamedSecret:
        """A new value in place of the one before, which is gone. Raises NotFound."""
        ...

    async def get(self, project: str, secret: str) -> NamedSecret: ...

    async def all(self, project: str) -> tuple[NamedSecret, ...]:
        """By name."""
        ...

    async def remove(self, project: str, secret: str) -> None: ...

    async def value(self, project: str, secret: str, now: datetime) -> str:
        """For a launch, and for nothing else."""
        ...

    async def rotate(self) -> int:
        """How many values have the new key."""
        ...


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def reference_of(value: str) -> str:
    """The name of the secret that a variable's value refers to; empty where it is an ordinary value."""
    name = value.removeprefix(SCHEME)
    return name if name != value and is_name(name) else file_reference_of(value)


def file_reference_of(value: str) -> str:
    """The name of the secret that a program finds in a file; empty where the value is another one."""
    name = value.removeprefix(FILE_SCHEME)
    return name if name != value and is_name(name) else ""


def references(env: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """The variables that refer to secrets, with the names of these."""
    return {name: secret for name, value in env if (secret := reference_of(value))}
