"""Tell Trainshed how far a program is. One file, no dependencies: copy it beside your program if you like.

    from trainshed import report

    for step in range(1000):
        ...
        report.step(step + 1, total=1000, loss=loss)
    report.values(accuracy=0.93)

`trainshed top` and `ls` show the step, the time left and the last values; the values are kept as series. The
study of a trial reads every report. Each call overwrites a part of one file named by TRAINSHED_REPORT, which
has the sum of all reports and, behind that, the latest ones (a few microseconds, 128 KiB on disk at most).
Without that variable, outside Trainshed, every call does nothing. It never raises: a full disk or a value
that is no number is no reason to end a training. Values are turned into floats, which for a tensor on a GPU
waits for it.

A program that cannot import it prints a line instead: `TRAINSHED_STEP 3/1000 loss=0.5`.
"""

import json
import os
import threading
import time

VARIABLE = "TRAINSHED_REPORT"
MOST_VALUES = 64
HISTORY = 64 * 1024  # where the latest reports begin in the file; older readers look at what is before
HISTORY_SIZE = 64 * 1024

_lock = threading.Lock()
_state: dict[str, object] = {}
_values: dict[str, float] = {}
_open: dict[str, int] = {}  # path -> descriptor
_width = 0
_place = 0  # in the history: at its end the writer begins again at its start


def step(number: float, total: "float | None" = None, **values: object) -> None:
    """Step `number` of `total` is done; with any values that are numbers."""
    _tell({"step": _number(number), "total": _number(total)}, values)


def values(**values: object) -> None:
    """Values without a step: what was said of steps before stays."""
    _tell({}, values)


def _number(value: object) -> "float | None":
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _tell(news: "dict[str, float | None]", values: "dict[str, object]") -> None:
    global _width, _place
    path = os.environ.get(VARIABLE)
    if not path:
        return
    with _lock:
        _state.update({name: value for name, value in news.items() if value is not None})
        fresh: dict[str, float] = {}
        for name, value in values.items():
            number = _number(value)
            if number is not None and (name in _values or len(_values) < MOST_VALUES):
                _values[name[:100]] = fresh[name[:100]] = number
        at = time.time_ns()
        # The time stands at both ends: who reads while it is being written can tell.
        text = f"{at} {json.dumps({**_state, 'values': _values})} {at}"
        _width = max(_width, len(text))
        latest = (
            text if len(fresh) == len(_values) else f"{at} {json.dumps({**_state, 'values': fresh})} {at}"
        )
        # An end of line first, too: what is left there of an older report must not spoil it.
        line = f"\n{latest}\n".encode()
        if _place + len(line) > HISTORY_SIZE:
            _place = 0
        try:
            if path not in _open:
                _open[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(_open[path], text.ljust(_width).encode() + b"\n", 0)
            if fresh and len(line) <= HISTORY_SIZE:
                os.pwrite(_open[path], line, HISTORY + _place)
                _place += len(line)
        except OSError:
            return
