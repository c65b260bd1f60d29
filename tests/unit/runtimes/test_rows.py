"""The rows: the shipped file is sound, the operator's adds and replaces, and its mistakes are sentences."""

from pathlib import Path
from typing import Any

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.supplies.requirements import faults
from trainshed.runtimes.rows import load_rows, read_rows, shipped_rows


def test_every_shipped_runtime_pins_its_framework_and_names_only_packages():
    for row in shipped_rows():
        assert row.imports
        assert faults(row.requirements) == ()
        assert all("==" in line for line in row.requirements), f"{row.name} would not be the same next year"
        assert any(line.endswith(f"=={row.version}") for line in row.requirements)


def test_a_file_of_the_operator_adds_rows_and_replaces_those_of_the_same_name_and_version(tmp_path: Path):
    own = tmp_path / "runtimes.toml"
    own.write_text(
        '[[runtimes]]\nname = "trainshed/jax"\nversion = "0.10.2"\nrequirements = ["jax[cuda12]==0.10.2"]\n'
        '[[runtimes]]\nname = "team/base"\nimages = ["registry.example/*"]\n'
    )
    rows = {(row.name, row.version): row for row in load_rows(own)}
    assert rows["trainshed/jax", "0.10.2"].requirements == ("jax[cuda12]==0.10.2",)
    assert rows["team/base", ""].images == ("registry.example/*",)
    assert len(rows) == len(shipped_rows()) + 1


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"runtime": []}, "'runtime' is not known"),
        ({"runtimes": {"name": "x"}}, "each written as"),
        ({"runtimes": ["x"]}, "runtime 1 is not a table"),
        ({"runtimes": [{"name": "a"}, {"nam": "b"}]}, "runtime 2 has an unknown word 'nam'"),
        ({"runtimes": [{"version": "1"}]}, "needs a name"),
        ({"runtimes": [{"name": "Bad Name"}]}, "needs a name"),
        ({"runtimes": [{"name": "a", "version": "new"}]}, "must be such as 2.13.0"),
        ({"runtimes": [{"name": "a", "requirements": "six"}]}, "must be a list of texts"),
        ({"runtimes": [{"name": "a", "imports": [1]}]}, "must be a list of texts"),
        ({"runtimes": [{"name": "a", "index": 1}]}, "must be a text"),
        ({"runtimes": [{"name": "trainshed/python"}]}, "the server's own interpreter"),
    ],
)
def test_a_mistake_is_told_with_the_row_it_is_in(data: dict[str, Any], why: str):
    with pytest.raises(ValueError, match=why):
        read_rows(data)


@pytest.mark.parametrize("text", ["[[runtimes]\n", '[[runtimes]]\nname = "X"\n', None])
def test_a_file_that_cannot_be_used_is_refused_by_its_name(tmp_path: Path, text: str | None):
    own = tmp_path / "mine.toml"
    if text is not None:
        own.write_text(text)
    with pytest.raises(Invalid, match=r"mine\.toml"):
        load_rows(own)
