"""Notebooks as programs: run as people run jobs, in a Python of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainshed.cli.notebook import started
from trainshed.cli.trouble import EarlyError


def notebook(folder: Path, *cells: str, **metadata: Any) -> Path:
    file = folder / "train.ipynb"
    rows = [{"cell_type": "markdown", "source": ["# ! a title"]}]
    rows += [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    file.write_text(json.dumps({"nbformat": 4, "metadata": metadata, "cells": rows}))
    return file


def run(file: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = started(str(file), file.name, file.name)
    assert command[0] == "python"
    return subprocess.run(
        [sys.executable, *command[1:], *args], cwd=file.parent, capture_output=True, text=True, check=False
    )


def test_the_code_cells_of_a_notebook_run_in_order_as_one_program(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("size = 3")
    cells = (
        "import sys, model\nx = model.size",
        "def twice(): return 2 * x",
        "print(twice(), sys.argv, __name__)",
    )
    done = run(notebook(tmp_path, *cells), "--epochs", "5")
    assert done.stdout == "6 ['train.ipynb', '--epochs', '5'] __main__\n", done.stderr


def test_a_failing_cell_is_named_by_its_number_with_its_lines(tmp_path: Path) -> None:
    done = run(notebook(tmp_path, "def f():\n    return 1 / 0", "print('so far')\nf()"))
    assert (done.returncode, done.stdout) == (1, "so far\n")
    assert 'File "train.ipynb, cell 2", line 2' in done.stderr
    assert 'File "train.ipynb, cell 1", line 2, in f\n    return 1 / 0' in done.stderr
    assert "<string>" not in done.stderr
    assert 'File "train.ipynb, cell 1", line 1' in run(notebook(tmp_path, "a b")).stderr


def test_an_exit_of_a_notebook_is_the_exit_of_the_job(tmp_path: Path) -> None:
    assert run(notebook(tmp_path, "raise SystemExit(7)")).returncode == 7


def test_lines_for_the_display_are_left_out_and_strings_are_left_alone(tmp_path: Path) -> None:
    cells = (
        "%matplotlib inline\nif 1:\n    %autoreload 2\nx = 1",
        'print("""\n!ls\n%pip""", x)',
        "%%time\ndisplay(x)",
    )
    done = run(notebook(tmp_path, *cells))
    assert done.stdout == "\n!ls\n%pip 1\n1\n", done.stderr


def test_what_only_a_kernel_can_run_is_refused_with_its_cell_and_what_to_do(tmp_path: Path) -> None:
    file = notebook(tmp_path, "import os", "%pip install torch\n!nvidia-smi\nfiles = !ls\n%%bash\nx = 1")
    with pytest.raises(EarlyError) as error:
        started(str(file), file.name, file.name)
    assert error.value.details[:4] == (
        "cell 2: %pip install torch  (installs packages)",
        "cell 2: !nvidia-smi",
        "cell 2: !ls",
        "cell 2: %%bash",
    )
    assert "--requirements" in error.value.details[4]


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 5}', '{"worksheets": []}', '{"cells": []}', "\x00"])
def test_what_is_no_notebook_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.ipynb"
    file.write_text(text)
    with pytest.raises(EarlyError, match=r"x\.ipynb"):
        started(str(file), file.name, file.name)


def test_a_notebook_in_another_language_is_refused(tmp_path: Path) -> None:
    file = notebook(tmp_path, "x <- 1", kernelspec={"language": "R"})
    with pytest.raises(EarlyError, match="notebook in R"):
        started(str(file), file.name, file.name)
