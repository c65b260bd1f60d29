"""docs/guide/faults.md is what the tests say."""

from pathlib import Path

from tests import faults

PAGE = Path("docs/guide/faults.md")


def test_the_page_of_faults_is_made_from_the_tests() -> None:
    again = "make it again: .venv/bin/python -m tests.faults > docs/guide/faults.md"
    assert PAGE.read_text() == faults.render(faults.collect()), again


def test_every_sentence_on_the_page_is_compared_by_its_test() -> None:
    unchecked = [fault.test for fault in faults.collect() if fault.sentence and not fault.is_checked]
    assert not unchecked
