"""What the graphs of one job show: a range of its life, what its replicas used and reported, marks.

`service/graphs.py` makes them, `wire/graphs.py` writes them.
"""

from dataclasses import dataclass
from datetime import datetime

from trainshed.core.columns import Columns, ReportedColumns
from trainshed.core.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRange:
    """Which part of a job's life is asked for. None: from its first admission, to its end or now."""

    since: datetime | None
    until: datetime | None
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraphs:
    since: datetime
    until: datetime
    whole_since: datetime  # the range that has everything
    whole_until: datetime
    usage: Columns
    reports: tuple[ReportedColumns, ...]
    marks: tuple[Event, ...]
