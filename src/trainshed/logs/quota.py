"""Keeps a job's output within its quota, or makes room on a disk that is almost full (reserve.py): the middle
of the largest file goes, its start and newest part stay.

The range is recorded first and freed afterwards, so that nobody is ever given the zeros of a hole. Where
the file system cannot free the middle of a file nothing is dropped: the data are kept, and the log says so
once. Works while the program goes on writing; only what has been dated is dropped.
"""

import logging
import os
import tempfile
from collections.abc import Sequence

from trainshed.logs.drop import FULL_DISK, Drop
from trainshed.logs.file import LogFile
from trainshed.logs.punch import PAGE, punch
from trainshed.logs.reserve import LEAST
from trainshed.logs.scan import line_start

_log = logging.getLogger(__name__)


class Quota:
    def __init__(self, size: int, folder: str) -> None:
        self.size = size
        self._folder = folder
        self._can: bool | None = None

    def is_over(self, kept: int) -> bool:
        return kept > self.size and self._can is not False

    def enforce(self, files: Sequence[LogFile]) -> int:
        """Drop until a tenth of the quota is free again; the bytes dropped now. OSError on a full disk."""
        total = sum(file.kept for file in files)
        if total <= self.size or not self._can_punch():
            return 0
        return self._drop_from(files, total - self.size * 9 // 10, self.size)

    def make_room(self, files: Sequence[LogFile], need: int) -> int:
        """Drop so much, but never of the least that stays; the bytes dropped. OSError on a full disk."""
        if not self._can_punch():
            return 0
        return self._drop_from(files, min(need, sum(file.kept for file in files) - LEAST), FULL_DISK)

    def _drop_from(self, files: Sequence[LogFile], need: int, why: int) -> int:
        dropped = 0
        while dropped < need:
            largest = max(files, key=lambda file: file.kept)
            got = self._drop(largest, need - dropped, why)
            if got == 0:
                break
            dropped += got
        return dropped

    def _drop(self, file: LogFile, need: int, why: int) -> int:
        end = file.index.last.end
        if file.drop:
            head, begin = file.drop.head, file.drop.cut
        else:
            head = begin = line_start(file, min(self.size // 8, end // 4))
        # At most half of what is left behind the gap: the newest lines are what people look for.
        cut = line_start(file, begin + min(need, (end - begin) // 2))
        if cut <= begin:
            return 0
        file.set_drop(Drop(head, cut, why))
        # The byte before the cut stays: by it a reader sees that a line begins there.
        if not punch(file.path, head, cut - 1):
            _log.warning(
                "The middle of %s could not be freed; it is hidden but still takes up disk.", file.path
            )
        return cut - begin

    def _can_punch(self) -> bool:
        if self._can is None:
            with tempfile.NamedTemporaryFile(dir=self._folder) as probe:
                os.write(probe.fileno(), bytes(2 * PAGE))
                self._can = punch(probe.name, 0, PAGE)
            if not self._can:
                _log.warning("%s cannot free the middle of a file: logs are kept beyond quota.", self._folder)
        return self._can
