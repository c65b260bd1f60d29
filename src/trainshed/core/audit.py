"""The audit log: who did what, from where, and whether they were allowed to. Pure.

The API writes a row for each call that changes something or opens a shell, and for each that was refused.
Data that programs of jobs read and write is not in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainshed.core.permission import Permission, Principal, PrincipalKind

_REFUSED = (401, 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    at: datetime
    who: str  # the principal, in words
    token: str  # the id of the token it used; empty: the server's own, or a job's
    address: str  # where the request came from
    verb: str
    path: str  # without any token
    permission: str
    project: str  # empty: it concerns the whole server
    code: int  # of the answer
    reason: str = ""  # why it was refused

    @property
    def is_allowed(self) -> bool:
        return self.code not in _REFUSED


def is_audited(principal: Principal, permission: Permission, verb: str, code: int) -> bool:
    if code in _REFUSED:
        return True
    return verb != "GET" and not permission.reads and principal.kind is not PrincipalKind.JOB


class AuditLog(Protocol):
    """Keeps rows in their order.

    1. what append took survives kill -9; nothing of it is changed later.
    2. newest gives each row once, the newest first.
    """

    def append(self, row: AuditRow) -> None: ...

    def newest(self) -> Iterator[AuditRow]: ...
