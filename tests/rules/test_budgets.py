"""The budgets of DESIGN hold for the whole source, and each of these checks can fail."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules import budgets
from tests.rules.source import PACKAGE, ROOT

Rule = Callable[[Path], list[str]]

EVERYWHERE: list[Rule] = [
    budgets.long_files,
    budgets.long_functions,
    budgets.many_parameters,
    budgets.without_docstring,
    budgets.vague_names,
    budgets.catch_alls,
    budgets.unfinished,
    budgets.open_matches,
]
IN_THE_CORE: list[Rule] = [budgets.typing_escapes, budgets.impure_imports]
IN_TESTS: list[Rule] = [budgets.vague_names]

FILLER = "\n".join("    pass" for _ in range(61))
OFFENCES: list[tuple[Rule, str, str]] = [
    (budgets.long_files, "a.py", "\n" * 401),
    (budgets.long_functions, "a.py", f"def f():\n{FILLER}\n"),
    (budgets.many_parameters, "a.py", "def f(a, b, c, d, e, *, f, g, h): ...\n"),
    (budgets.without_docstring, "a.py", "x = 1\n"),
    (budgets.vague_names, "utils/a.py", ""),
    (budgets.vague_names, "helpers.py", ""),
    (budgets.catch_alls, "a.py", "try:\n    pass\nexcept Exception:\n    pass\n"),
    (budgets.catch_alls, "a.py", "try:\n    pass\nexcept (OSError, BaseException):\n    pass\n"),
    (budgets.catch_alls, "a.py", "try:\n    pass\nexcept:\n    pass\n"),
    (budgets.catch_alls, "a.py", "try:\n    pass\nexcept BaseException:\n    pass\n"),
    (budgets.typing_escapes, "a.py", "from typing import TYPE_CHECKING\n"),
    (budgets.impure_imports, "a.py", "import time\n"),
    (budgets.impure_imports, "a.py", "def f():\n    from pydantic import BaseModel\n"),
    (budgets.impure_imports, "a.py", "from trainshed.store.sql import SqlStore\n"),
    (budgets.impure_imports, "a.py", "from ..store import sql\n"),
    (budgets.unfinished, "a.py", "# TODO: later\n"),
    (budgets.open_matches, "a.py", "match s:\n    case S.A:\n        x = 1\n    case S.B:\n        x = 2\n"),
]


def told(wrong: list[str]) -> str:
    return "\n".join(["a rule of the house is broken:", *wrong])


@pytest.mark.parametrize("rule", EVERYWHERE, ids=lambda rule: rule.__name__)
def test_the_source_keeps_the_rules_of_the_house(rule: Rule):
    wrong = rule(PACKAGE)
    assert not wrong, told(wrong)


@pytest.mark.parametrize("rule", IN_THE_CORE, ids=lambda rule: rule.__name__)
def test_the_core_keeps_the_rules_of_the_core(rule: Rule):
    wrong = rule(PACKAGE / "core")
    assert not wrong, told(wrong)


@pytest.mark.parametrize("rule", IN_TESTS, ids=lambda rule: rule.__name__)
def test_the_tests_keep_some_of_them_too(rule: Rule):
    wrong = rule(ROOT / "tests")
    assert not wrong, told(wrong)


@pytest.mark.parametrize(("rule", "name", "text"), OFFENCES, ids=lambda part: getattr(part, "__name__", ""))
def test_each_rule_finds_its_offence_and_says_what_to_do(rule: Rule, name: str, text: str, tmp_path: Path):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    [sentence] = rule(tmp_path)
    assert sentence.startswith(name)


def test_what_is_within_the_budgets_is_left_alone(tmp_path: Path):
    (tmp_path / "noun.py").write_text(
        '"""Why it exists."""\n\nimport json\n\nfrom trainshed.core.jobs.job import Job\n\n\n'
        "def verb(a, b, c, d, e, f, g):\n    try:\n        return json.loads(a)\n"
        "    except ValueError:\n        return Job\n"
    )
    assert [sentence for rule in (*EVERYWHERE, *IN_THE_CORE) for sentence in rule(tmp_path)] == []
