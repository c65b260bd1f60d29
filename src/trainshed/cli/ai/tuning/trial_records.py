"""The log of a study as records, until the study ends: each line once, whichever trial it is of.

Lines of several replicas may become known out of order. So each look goes back a little behind the last line,
and leaves out what was given already.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from trainshed.cli import words
from trainshed.cli.ai.records import LogRecord
from trainshed.client import Json

PAUSE = 0.5  # seconds between two looks that found nothing
BACK = timedelta(seconds=5)  # how late a line may become known


def trial_records(
    entries: Callable[[str], Iterable[Json]], has_ended: Callable[[], bool], pause: float = PAUSE
) -> Iterator[LogRecord]:
    """`entries` gives those from a timestamp on; `has_ended` says whether the study has."""
    given: dict[str, str] = {}  # insert ids, with their times, as far back as a look goes
    since = ""
    while True:
        is_over = has_ended()  # before the look, which then has all
        is_any = False
        for entry in entries(since):
            identity, at = str(entry.get("insertId")), str(entry.get("timestamp"))
            if identity not in given:
                given[identity] = at
                is_any = True
                yield _record(entry)
        if given:
            since = _before(max(given.values()))
            given = {identity: at for identity, at in given.items() if at >= since}
        if is_over and not is_any:
            return
        if not is_any:
            time.sleep(pause)


def _before(at: str) -> str:
    moment = words.moment(at)
    return (moment - BACK).isoformat().replace("+00:00", "Z") if moment else at


def _record(entry: Json) -> LogRecord:
    labels = entry.get("labels", {})
    task = str(entry.get("resource", {}).get("labels", {}).get("task_name", ""))
    trial = str(labels.get("ml.googleapis.com/trial_id", ""))
    at = words.moment(entry.get("timestamp"))
    shown = at.astimezone().strftime("%Y-%m-%d %H:%M:%S %z") if at else ""
    text = str(entry.get("jsonPayload", {}).get("message", entry.get("textPayload", "")))
    return LogRecord(str(entry.get("severity", "")), shown, task, text, trial)
