"""Tell Trainshed how far a program is. One file, no dependencies: copy it beside your program if you like.

    from trainshed import report

    for step in range(1000):
        ...
        report.step(step + 1, total=1000, loss=loss)
    report.values(accuracy=0.93)

`trainshed top` and `ls` show the step, the time left and the last values; the values are kept as series.
Each call overwrites one small file named by TRAINSHED_REPORT (a few microseconds, never more on disk).
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

_lock = threading.Lock()
_state: dict[str, object] = {}
_values: dict[str, float] = {}
_open: dict[str, int] = {}  # path -> descriptor
_width = 0


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
    global _width
    path = os.environ.get(VARIABLE)
    if not path:
        return
    with _lock:
        _state.update({name: value for name, value in news.items() if value is not None})
        for name, value in values.items():
            number = _number(value)
            if number is not None and (name in _values or len(_values) < MOST_VALUES):
                _values[name[:100]] = number
        at = time.time_ns()
        # The time stands at both ends: who reads while it is being written can tell.
        text = f"{at} {json.dumps({**_state, 'values': _values})} {at}"
        _width = max(_width, len(text))
        try:
            if path not in _open:
                _open[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(_open[path], text.ljust(_width).encode() + b"\n", 0)
        except OSError:
            return
