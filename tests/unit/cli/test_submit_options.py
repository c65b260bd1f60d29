"""Two readers, one table: the quick one says what click says, or leaves it to click."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.unit.cli.terminal import Terminal
from trainshed.cli import menu, submission, submit_options
from trainshed.cli.submit import command
from trainshed.cli.submit_options import SubmitWords, read

PLAIN = [
    "train.py",
    "train.py --replicas 3 --machine n1-standard-4 -- --epochs 5",
    "--replicas=3 train.py --name=x --name y",
    "-m pkg.mod -- a -- b",
    "--module=pkg.mod --folder . --include 'a b' --include=c --exclude d",
    "train.py -f --json --yes --dry-run",
    "train.py -y --detach --priority -5",
    "train.py --gpu T4:2 --env A=1 --env B= --label x=y --label=z=w",
    "train.py --accelerator T4 --runtime r --image i --requirements r.txt --timeout 1.5h",
    "train.py --url http://h --project p --location l",
    "train.py --image i --network none",
    "train.py --output az://b/o --job-dir=az://b/j --data az://b/x --data=n=az://b/k=v",
    "job.yaml --follow",
    "- --name x",
    "'ü b/s p.py' --",
    "",
]
LEFT_TO_CLICK = [
    "train.py -h",
    "train.py --help",
    "train.py -fy",
    "-mpkg.mod",
    "train.py extra",
    "train.py --epochs 5",
    "train.py --replicas",
    "train.py --replicas 0",
    "train.py --replicas three",
    "train.py --replicas 1_0",
    "train.py --replicas \uff13",
    "train.py --timeout soon",
    "train.py --timeout nan",
    "train.py --timeout 0",
    "train.py --detach=1",
    "train.py --repl 3",
    "''",
]


def by_click(args: list[str]) -> SubmitWords:
    with command.make_context("submit", list(args)) as ctx:
        return SubmitWords({**ctx.params, "arguments": ctx.meta["arguments"]})


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_mean_the_same_to_both_readers(line: str) -> None:
    args = shlex.split(line)
    found = read(args)
    assert found is not None
    assert found.given == by_click(args).given


@pytest.mark.parametrize("line", LEFT_TO_CLICK)
def test_what_is_not_plain_or_wrong_is_left_to_click(line: str) -> None:
    assert read(shlex.split(line)) is None


@pytest.mark.parametrize(
    "line", [line for line in LEFT_TO_CLICK if "-h" not in line.split() and "--help" not in line]
)
def test_what_click_accepts_beyond_it_is_few_forms(line: str) -> None:
    try:
        wish = by_click(shlex.split(line))
    except click.UsageError:
        return
    assert line in ("train.py -fy", "-mpkg.mod", "''"), wish.given


def test_every_option_is_a_field_of_the_options_and_a_parameter_of_the_command() -> None:
    fields = {row[0] for row in submit_options.OPTIONS}
    parameters = {parameter.name for parameter in command.params}
    assert fields | {"target"} == parameters
    assert fields | {"target", "arguments"} == set(SubmitWords.__annotations__)
    assert set(submit_options.FOR_FILES) < fields


@pytest.mark.parametrize(
    ("text", "told"),
    [("90s", "90s"), ("10m", "600s"), ("1.5h", "5400s"), ("2d", "172800s"), ("7", "7s"), ("0.5s", "0.5s")],
)
def test_a_length_of_time_is_told_in_seconds(text: str, told: str) -> None:
    assert submit_options.span(text) == told


@pytest.mark.parametrize("line", [line for line in PLAIN if "train.py" in line and "--url" not in line])
def test_both_ways_ask_the_server_the_same(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    root = tmp_path / "program"
    root.mkdir()
    (root / "train.py").write_text("print(1)")
    (root / "r.txt").write_text("numpy\n# no\n-r more.txt\n")
    (root / "more.txt").write_text("torch==2 # yes\n")
    monkeypatch.chdir(root)
    monkeypatch.setattr("trainshed.cli.follow.follow_to_end", lambda client, job, as_json: 0)
    args = shlex.split(line)
    codes: list[int | None] = []
    asked: list[list[tuple[str, object]]] = []
    for way in (submission.swift, lambda args: menu.run(["submit", *args])):
        terminal.script.asked.clear()
        codes.append(way(args))
        asked.append([(f"{one.method} {one.path}", one.body) for one in terminal.script.asked])
    assert codes == [0, 0]
    assert asked[0] == asked[1]
    assert asked[0], "the server was asked something"


LIGHT = {"_socket", "_json", "_sha256", "_sha2", "_hashlib", "hashlib", "_blake2", "gc", "errno", "select"}


def test_next_to_nothing_is_imported_before_the_job_is_submitted(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "train.py").write_text("")
    program = """
import sys
bare = set(sys.modules)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "trainshed.cli.follow":  # what comes after is for people's eyes
            print(*set(sys.modules) - bare, sep="\\n")
            sys.exit()
sys.meta_path.insert(0, Finder())
from trainshed.cli.main import main
main()
"""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "PYTHON"))}
    environ |= {"TRAINSHED_HOME": str(tmp_path), "TRAINSHED_URL": terminal.script.url}
    done = subprocess.run(
        [sys.executable, "-c", program, "submit", "train.py"],
        cwd=tmp_path / "program",
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name for name in done.stdout.splitlines() if not name.startswith("trainshed")}
    assert terminal.sent["jobSpec"]["code"], "the job was submitted"
    assert loaded <= LIGHT, "these cost a person's time at every submit (docs/adr/0014)"
