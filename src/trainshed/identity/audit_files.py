"""The audit log in files of the home: a line of JSON for each row, a file for each month, which only grows.

The API appends to it. A row is one write, so a kill leaves whole lines. No file is ever removed here.
"""

import logging
import os
from pathlib import Path

from trainshed.core.audit import AuditPage, AuditPlace, AuditQuery, AuditRow
from trainshed.identity.audit_line import line_of
from trainshed.identity.audit_pages import read_page
from trainshed.identity.audit_refusals import Refusals

log = logging.getLogger(__name__)


class AuditFiles:
    """Implements `core.audit.AuditLog`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name, self._handle = "", -1
        self._refusals = Refusals()

    def append(self, row: AuditRow) -> None:
        for item in self._refusals.rows(row):
            self._write(item)

    def settle(self) -> None:
        for row in self._refusals.settled():
            self._write(row)

    def read(self, query: AuditQuery, limit: int, place: AuditPlace | None = None) -> AuditPage:
        return read_page(self._folder, query, limit, place)

    def _write(self, row: AuditRow) -> None:
        line = line_of(row)
        try:
            os.write(self._open(f"{row.at:%Y-%m}.jsonl"), line)
        except OSError as error:
            log.error("the audit log cannot be written: %s: %s", error, line.decode().rstrip())

    def _open(self, name: str) -> int:
        if name != self._name:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            handle = os.open(self._folder / name, flags, 0o600)
            if self._handle >= 0:
                os.close(self._handle)
            self._name, self._handle = name, handle
        return self._handle
