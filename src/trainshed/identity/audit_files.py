"""The audit log in files of the home: a line of JSON for each row, a file for each month, which only grows.

The API appends to it. A row is one write, so a kill leaves whole lines. Rows of refused calls of
nobody known are limited in a second: whoever sends wrong tokens without end must not fill the disk. No file
is ever removed here.
"""

import json
import logging
import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from trainshed.core.audit import AuditPage, AuditPlace, AuditQuery, AuditRow
from trainshed.identity.audit_pages import read_page

log = logging.getLogger(__name__)

MOST_REFUSED = 50  # rows in a second
_MOST_TEXT = 1000  # characters of a path or a reason


class AuditFiles:
    """Implements `core.audit.AuditLog`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name, self._handle = "", -1
        self._second, self._refused = 0, 0

    def append(self, row: AuditRow) -> None:
        if not row.is_allowed and not row.token and self._is_flood(row.at):
            return
        fields = asdict(row) | {"at": row.at.isoformat()}
        fields |= {"path": row.path[:_MOST_TEXT], "reason": row.reason[:_MOST_TEXT]}
        line = json.dumps({name: value for name, value in fields.items() if value != ""}) + "\n"
        try:
            os.write(self._open(f"{row.at:%Y-%m}.jsonl"), line.encode())
        except OSError as error:
            log.error("the audit log cannot be written: %s: %s", error, line.rstrip())

    def read(self, query: AuditQuery, limit: int, place: AuditPlace | None = None) -> AuditPage:
        return read_page(self._folder, query, limit, place)

    def _is_flood(self, at: datetime) -> bool:
        second = int(at.timestamp())
        if second != self._second:
            if self._refused > MOST_REFUSED:
                log.warning("%d refused calls are not in the audit log", self._refused - MOST_REFUSED)
            self._second, self._refused = second, 0
        self._refused += 1
        return self._refused > MOST_REFUSED

    def _open(self, name: str) -> int:
        if name != self._name:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            handle = os.open(self._folder / name, flags, 0o600)
            if self._handle >= 0:
                os.close(self._handle)
            self._name, self._handle = name, handle
        return self._handle
