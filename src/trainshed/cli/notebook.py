"""A notebook as a program to submit: its code cells, checked here for what only a notebook's kernel can do.

`cli/order.py` asks for the words that start it. The notebook travels as it is; `notebook_program.py` runs it.
"""

import json
import os
import re
import warnings
from typing import Any

from trainshed.cli.notebook_program import DISPLAY
from trainshed.cli.trouble import EarlyError

MAGIC = re.compile(r"^\s*(?:[\w, ]+=\s*)?(?P<line>[!%].*)$", re.MULTILINE)
PIP = re.compile(r"[!%]\s*(?:python3? -m )?(?:pip3?|conda|uv pip) +install\b")


def started(full: str, path: str, called: str) -> list[str]:
    """The words that run the notebook; Trouble with each line that is no Python."""
    faults = [fault for number, text in enumerate(_cells(full, called), 1) for fault in _faults(number, text)]
    if faults:
        fix = "put packages into a file and submit with --requirements FILE; run commands by subprocess.run"
        raise EarlyError(f"{called} has lines that only a notebook's kernel can run", [*faults, fix])
    with open(f"{os.path.dirname(__file__)}/notebook_program.py", encoding="utf-8") as file:  # noqa: PTH120, PTH123
        return ["python", "-c", file.read(), path]


def _cells(full: str, called: str) -> list[str]:
    """The text of each code cell."""
    try:
        with open(full, encoding="utf-8") as file:  # noqa: PTH123
            notebook: dict[str, Any] = json.load(file)
        language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language") or "python")
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]) for cell in cells]
    except OSError as error:
        raise EarlyError(f"cannot read {called}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fix = "save it anew with Jupyter (its format is version 4)"
        raise EarlyError(f"{called} is no notebook that is understood", [fix]) from error
    if language.lower() != "python":
        raise EarlyError(f"{called} is a notebook in {language}; only those in Python can be run")
    if not any(text.strip() for text in texts):
        raise EarlyError(f"{called} has no code cells, so there is nothing to run")
    return texts


def _faults(number: int, text: str) -> list[str]:
    """What is no Python in a cell. One that is Python throughout may have such lines inside of strings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "cell", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        lines = [match["line"].strip() for match in MAGIC.finditer(DISPLAY.sub(r"\1pass", text))]
        return [
            f"cell {number}: {line}{'  (installs packages)' if PIP.match(line) else ''}" for line in lines
        ]
    return []
