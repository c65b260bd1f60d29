"""Runs a notebook's code cells in order, as one program; its text is what a job is started with.

It runs in the job's own Python, whatever its version: it needs the standard library only. Lines that concern
the display of a notebook are left out. A traceback names the cell and shows its lines.
"""

import builtins
import json
import linecache
import re
import sys
import traceback
from types import TracebackType

DISPLAY = re.compile(r"^(\s*)%%?(matplotlib|load_ext|reload_ext|autoreload|config|time|capture)\b.*$", re.M)


def run(path: str) -> None:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    sys.path[0] = path.rpartition("/")[0]
    builtins.__dict__["display"] = print
    sys.excepthook = lambda kind, error, trace: traceback.print_exception(kind, error, _own(trace))
    scope = sys.modules["__main__"].__dict__
    for number, cell in enumerate(cells, 1):
        text = "".join(cell["source"])
        try:
            compile(text, path, "exec", dont_inherit=True)
        except SyntaxError:
            text = DISPLAY.sub(r"\1pass", text)
        name = f"{path}, cell {number}"
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        exec(compile(text, name, "exec", dont_inherit=True), scope)


def _own(trace: "TracebackType | None") -> "TracebackType | None":
    """The part of a traceback that is the notebook's: from its first cell on."""
    while trace is not None and ", cell " not in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    del sys.argv[0]
    run(sys.argv[0])
