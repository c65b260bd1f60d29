"""What `trainshed doctor` says of one thing that a server needs: well, worse than it could be, or missing."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"  # jobs run, and something is worse than it could be
    MISSING = "missing"  # jobs cannot run


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    what: str  # a word or two: API, rights on pods
    grade: Grade
    sentence: str
    remedy: str = ""  # the command that mends it, or what to do
