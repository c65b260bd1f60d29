"""The history of a job: events and waiting reasons, each with a typed reason.

Every part of the server makes them; the store keeps them; the API shows them.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Reason(StrEnum):
    """Every reason Trainshed ever gives. Scripts may rely on these words."""

    SUBMITTED = "SUBMITTED"
    WAITS_FOR_ADMISSION = "WAITS_FOR_ADMISSION"
    WAITS_FOR_CAPACITY = "WAITS_FOR_CAPACITY"
    WAITS_BEHIND_OTHERS = "WAITS_BEHIND_OTHERS"
    WAITS_FOR_SHARE = "WAITS_FOR_SHARE"
    WAITS_FOR_PREEMPTED = "WAITS_FOR_PREEMPTED"
    PAUSES = "PAUSES"
    PREEMPTS = "PREEMPTS"
    PREEMPTED = "PREEMPTED"
    REQUEUED = "REQUEUED"
    TOO_LARGE = "TOO_LARGE"
    NO_NODES = "NO_NODES"
    BUDGET_SPENT = "BUDGET_SPENT"
    PREPARING = "PREPARING"
    PREPARATION_FAILED = "PREPARATION_FAILED"
    SHRUNK = "SHRUNK"
    NO_GPUS = "NO_GPUS"
    SUBSTITUTED = "SUBSTITUTED"
    INSTALLED = "INSTALLED"
    IMAGE_CACHED = "IMAGE_CACHED"
    LEFT_OUT = "LEFT_OUT"
    ADMITTED = "ADMITTED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    SCALING_UP = "SCALING_UP"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    WAITS_IN_CLUSTER_QUEUE = "WAITS_IN_CLUSTER_QUEUE"
    CLUSTER_QUEUE_UNUSABLE = "CLUSTER_QUEUE_UNUSABLE"
    CREATION_REFUSED = "CREATION_REFUSED"
    IMAGE_UNAVAILABLE = "IMAGE_UNAVAILABLE"
    CONFIG_MISSING = "CONFIG_MISSING"
    MOUNT_FAILED = "MOUNT_FAILED"
    REPLICA_RESTARTED = "REPLICA_RESTARTED"
    REPLICA_MOVED = "REPLICA_MOVED"
    REPLICA_FAILED_LATE = "REPLICA_FAILED_LATE"
    JOB_RETRIED = "JOB_RETRIED"
    PROGRAM_FAILED = "PROGRAM_FAILED"
    REPLICA_KILLED = "REPLICA_KILLED"
    REPLICA_LOST = "REPLICA_LOST"
    INTERRUPTED = "INTERRUPTED"
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    TIMED_OUT = "TIMED_OUT"
    WAITED_TOO_LONG = "WAITED_TOO_LONG"
    CANCEL_ASKED = "CANCEL_ASKED"
    CANCELLED = "CANCELLED"
    SUCCEEDED = "SUCCEEDED"
    STOPPED_AFTER_PRIMARY = "STOPPED_AFTER_PRIMARY"
    HELD = "HELD"
    STORING_OUTPUTS = "STORING_OUTPUTS"
    OUTPUTS_STORED = "OUTPUTS_STORED"
    OUTPUTS_LOST = "OUTPUTS_LOST"
    OUTPUTS_ELSEWHERE = "OUTPUTS_ELSEWHERE"
    NO_BUCKET = "NO_BUCKET"
    LOG_DROPPED = "LOG_DROPPED"
    HANG_SUSPECTED = "HANG_SUSPECTED"
    STACKS = "STACKS"
    HANG_OVER = "HANG_OVER"
    HUNG = "HUNG"


class Severity(StrEnum):
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a job's history."""

    at: datetime
    reason: Reason
    message: str
    severity: Severity = Severity.INFO
    attempt: int = 0
    task: str = ""
    sequence: int = 0  # given by the store: increases within a job


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a job is not running: the reason, a sentence with numbers, and what would change it."""

    reason: Reason
    message: str
    remedy: str = ""
    since: datetime | None = None  # when nothing moved for the last time, where that is limited
