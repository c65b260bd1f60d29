"""The audit log: who did what, from where, and whether they were allowed to. Pure.

The API writes a row for each call that changes something or opens a shell, and for each that was refused.
Data that programs of jobs read and write is not in it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind

_REFUSED = (401, 403)

AuditPlace: TypeAlias = tuple[str, str]  # where a page begins; only the log knows what it says


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
    what: str = ""  # what was changed, where the path does not tell it
    count: int = 1  # of calls that were refused alike

    @property
    def is_allowed(self) -> bool:
        return self.code not in _REFUSED

    @property
    def is_of_nobody(self) -> bool:
        """Whether nobody known did it."""
        return self.who == PrincipalKind.ANONYMOUS


def is_audited(principal: Principal, permission: Permission, verb: str, code: int) -> bool:
    if code in _REFUSED:
        return True
    return verb != "GET" and not permission.reads and principal.kind is not PrincipalKind.JOB


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    projects: frozenset[str] | None = None  # None: of all, and what concerns the whole server
    who: str = ""  # one of the words of AuditRow.who
    only_refused: bool = False

    def fits(self, row: AuditRow) -> bool:
        return (
            (self.projects is None or row.project in self.projects)
            and (not self.who or self.who in row.who.split())
            and not (self.only_refused and row.is_allowed)
        )


@dataclass(frozen=True, slots=True)
class AuditPage:
    rows: tuple[AuditRow, ...]
    next_place: AuditPlace | None  # None: there is no page after it


class AuditLog(Protocol):
    """Keeps rows in their order.

    1. what append took survives kill -9; nothing of it is changed later.
    2. the pages of read have each row that fits once, the newest first.
    3. read looks at so much and no more: a page may have few rows, or none, and others after it.
    4. read may run in a thread while rows are appended.
    """

    def append(self, row: AuditRow) -> None: ...

    def settle(self) -> None:
        """Writes what append holds back: how often calls were refused alike."""
        ...

    def read(self, query: AuditQuery, limit: int, place: AuditPlace | None = None) -> AuditPage: ...
