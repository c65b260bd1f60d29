"""The audit log in files of the home: a line of JSON for each row, a file for each month, which only grows.

The API appends to it. A row is one write, so a kill leaves whole lines; one that a full disk cut off ends
where the next begins. A file that was moved away meanwhile is begun anew. No file is ever removed here.
"""

import logging
import os
from pathlib import Path

from trainshed.core.accounts.audit import AuditPage, AuditPlace, AuditQuery, AuditRow
from trainshed.identity.audit_line import line_of
from trainshed.identity.audit_pages import read_page
from trainshed.identity.audit_refusals import Refusals

log = logging.getLogger(__name__)


class AuditFiles:
    """Implements `core.accounts.audit.AuditLog`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name: str = ""
        self._handle, self._inode = -1, 0
        self._is_torn = False  # the file does not end with a whole line
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
            handle = self._open(self._folder / f"{row.at:%Y-%m}.jsonl")
            left = b"\n" + line if self._is_torn else line
            while left:
                left = left[os.write(handle, left) :]
                self._is_torn = bool(left)
        except OSError as error:
            log.error("the audit log cannot be written: %s: %s", error, line.decode().rstrip())

    def _open(self, path: Path) -> int:
        if path.name == self._name and self._is_there(path):
            return self._handle
        self._folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if self._handle >= 0:
            os.close(self._handle)
        about = os.fstat(handle)
        self._name, self._handle, self._inode = path.name, handle, about.st_ino
        self._is_torn = about.st_size > 0 and os.pread(handle, 1, about.st_size - 1) != b"\n"
        return handle

    def _is_there(self, path: Path) -> bool:
        """Whether the open file still has its name: logrotate and people move files."""
        try:
            return path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False
