"""Faults that people meet, each shown by a test: what happens, what the server does, what a person reads.

Mark such a test with `@pytest.mark.fault(GROUP, WHEN, THEN, sentence=…)`, all plain texts. Where there is a
sentence, the test takes the fixture `sentence` and asserts `sentence.is_in(TEXT)`; `…` in it is any text.
`python -m tests.faults` prints docs/guide/faults.md from the marks. tests/rules compares the two.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import pytest

from trainshed.core.query import is_like

ROOT = Path(__file__).parent
GROUPS = (
    "The server",
    "The database",
    "Disks",
    "Buckets",
    "Programs",
    "Containers",
    "Packages and code",
    "The clock",
)
HEAD = """# What happens when something breaks

Each fault below is brought about by a test, with the real part that breaks. The test is named, so that you
can read what is promised and run it yourself. `…` stands for names and numbers. [failures.md](failures.md)
has what ends a program and what is tried again, [server.md](server.md) how to keep a server.

This page is made from the tests: `python -m tests.faults > docs/guide/faults.md`.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    group: str
    when: str
    then: str
    sentence: str
    test: str
    is_checked: bool  # the test compares the sentence


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a person must read."""

    text: str

    def is_in(self, text: str) -> bool:
        return is_like(" ".join(text.split()), f"*{self.text}*".replace("…", "*"))


@pytest.fixture
def sentence(request: pytest.FixtureRequest) -> Sentence:
    mark = request.node.get_closest_marker("fault")
    return Sentence(mark.kwargs["sentence"])


def collect() -> list[Fault]:
    """Every mark, in the order of GROUPS and of the text of the files."""
    faults = [fault for path in sorted(ROOT.rglob("test_*.py")) for fault in _marked(path)]
    return sorted(faults, key=lambda fault: GROUPS.index(fault.group))


def _marked(path: Path) -> Iterator[Fault]:
    text = path.read_text()
    if "mark.fault(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
                group, when, then = (str(ast.literal_eval(argument)) for argument in decorator.args)
                words = {word.arg: str(ast.literal_eval(word.value)) for word in decorator.keywords}
                is_checked = "sentence.is_in(" in ast.unparse(node)
                test = f"{path.relative_to(ROOT.parent)}::{node.name}"
                yield Fault(group, when, then, words.get("sentence", ""), test, is_checked)


def render(faults: list[Fault]) -> str:
    parts = [HEAD]
    for group in GROUPS:
        of_group = [fault for fault in faults if fault.group == group]
        parts += [f"## {group}\n"] if of_group else []
        for fault in of_group:
            parts.append(f"### {fault.when}\n")
            parts.append(f"{_lines(fault.then)}\n")
            parts += [f"{_lines(fault.sentence, '> ')}\n"] if fault.sentence else []
            file, _, name = fault.test.partition("::")
            parts.append(f"`{file}`:\n`{name}`\n")
    return "\n".join(parts)


def _lines(text: str, start: str = "") -> str:
    return fill(text, 118, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


if __name__ == "__main__":
    print(render(collect()), end="")
