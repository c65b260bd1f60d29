"""CSV that people open in spreadsheets: no name of a job, user or label is computed there."""

import csv
import io
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted import Asked, Handler

FORMULAS = ['=HYPERLINK("http://evil")', "@SUM(1+1)", "+cmd", "-2+3", "\t=1", "\r=1", "\n=1"]


def written(text: str) -> str:
    return "'" + text.replace("\r", "\n")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_of_the_costs_becomes_a_formula(terminal: Terminal, text: str) -> None:
    row = {"group": text, "displayName": text, "project": text, "cost": "-0.5", "cpuHours": "1.000000"}

    def answer(asked: Asked, handler: Handler) -> tuple[int, Any]:
        return 200, {"rows": [row], "total": {}, "totalSize": 1, "currency": "EUR"}

    terminal.script.answer = answer
    [told] = csv.DictReader(io.StringIO(terminal("costs", "--csv").out, newline=""))
    assert [told[name] for name in ("group", "displayName", "project")] == [written(text)] * 3
    assert (told["cost"], told["cpuHours"], told["goodput"]) == ("-0.5", "1.000000", "")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_of_a_list_in_gclouds_csv_becomes_a_formula(terminal: Terminal, text: str) -> None:
    terminal.add("1", displayName=text)
    done = terminal("ai", "custom-jobs", "list", "--format=csv(displayName,state)")
    [told] = csv.DictReader(io.StringIO(done.out, newline=""))
    assert told["display_name"] == written(text)
