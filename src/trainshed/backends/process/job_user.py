"""The user that the programs of a job run as, where that is not the server's own (--run-as).

job_users.py decides which job gets which. The keeper, a fork of a warm interpreter and a shell beside a run
each become that user before any code of the job runs. Values: they know nothing of the machine.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

NAME = "trainshed"  # of a user that the machine has no name for


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUser:
    uid: int
    gid: int
    groups: tuple[int, ...] = ()  # further ones
    name: str = NAME

    @property
    def words(self) -> tuple[str, str]:
        """As keeper.c reads it."""
        return str(self.uid), ",".join(map(str, (self.gid, *self.groups)))

    @property
    def plain(self) -> Mapping[str, object]:
        return asdict(self)

    def env(self, home: str) -> dict[str, str]:
        return {"HOME": home, "USER": self.name, "LOGNAME": self.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAs:
    """Whom jobs may run as: all of them one user, or each a user of its own."""

    users: tuple[JobUser, ...]
    shared: bool


def read_user(text: bytes) -> JobUser | None:
    """What was written of a user; None where it is not that."""
    try:
        row = cast(dict[str, Any], json.loads(text))
        uid, gid, groups = int(row["uid"]), int(row["gid"]), tuple(int(group) for group in row["groups"])
        return JobUser(uid=uid, gid=gid, groups=groups, name=str(row["name"]))
    except (ValueError, KeyError, TypeError):
        return None
