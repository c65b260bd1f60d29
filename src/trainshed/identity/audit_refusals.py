"""What of refused calls is written to the audit log: whoever calls without end must not fill the disk.

`audit_files` asks it about each row. Refused calls that are alike are one row at once, and another with
their count. Those of nobody known are cut, and all of a day together have so many bytes; so have those of
programs of jobs, and of others without the token of an account. It writes nothing itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from trainshed.core.accounts.audit import AuditRow
from trainshed.identity.audit_line import line_of

ALIKE = timedelta(minutes=1)  # calls that are alike are counted for so long
MOST_A_DAY = 4 << 20  # bytes of lines
MOST_COUNTED = 1000  # rows whose likes are counted at a time
MOST_OF_NOBODY = 100  # characters of a path or reason
_ANY_TIME = datetime.min.replace(tzinfo=UTC)
_ENOUGH = "Further refused calls of this kind are not written down today: there are too many."


@dataclass(slots=True)
class _Counted:
    row: AuditRow
    since: datetime
    count: int = 0  # of those after the first, which is written already


class Refusals:
    def __init__(self) -> None:
        self._counted: dict[AuditRow, _Counted] = {}  # by what is alike in them, the oldest first
        self._day = date.min
        self._bytes: dict[bool, int] = {}  # of the day, by whether they are of nobody

    def rows(self, row: AuditRow) -> Iterator[AuditRow]:
        """What is to be written now, where this row is to be."""
        yield from self._over(row.at)
        if not row.is_of_nobody and (row.is_allowed or row.token):
            yield row
            return
        if row.is_of_nobody:
            row = replace(row, path=row.path[:MOST_OF_NOBODY], reason=row.reason[:MOST_OF_NOBODY])
        alike = replace(row, at=_ANY_TIME)
        if (known := self._counted.get(alike)) is not None:
            known.count += 1
            known.row = row
            return
        if len(self._counted) >= MOST_COUNTED:
            yield from self._written(self._counted.pop(next(iter(self._counted))))
        for first in self._within_bounds(row):
            yield first
            self._counted[alike] = _Counted(row, row.at)

    def settled(self) -> Iterator[AuditRow]:
        """The counts so far."""
        for counted in self._counted.values():
            yield from self._written(counted)

    def _over(self, now: datetime) -> Iterator[AuditRow]:
        while self._counted:
            alike, counted = next(iter(self._counted.items()))
            if now < counted.since + ALIKE:
                return
            del self._counted[alike]
            yield from self._written(counted)

    def _written(self, counted: _Counted) -> Iterator[AuditRow]:
        if counted.count:
            yield from self._within_bounds(replace(counted.row, count=counted.count))
            counted.count = 0

    def _within_bounds(self, row: AuditRow) -> Iterator[AuditRow]:
        """The row; the first that is too much is one that says so, and others are none."""
        if row.at.date() != self._day:
            self._day, self._bytes = row.at.date(), {}
        before = self._bytes.get(row.is_of_nobody, 0)
        self._bytes[row.is_of_nobody] = after = before + len(line_of(row))
        if after <= MOST_A_DAY:
            yield row
        elif before <= MOST_A_DAY:
            yield replace(row, address="", verb="", path="", permission="", project="", reason=_ENOUGH)
