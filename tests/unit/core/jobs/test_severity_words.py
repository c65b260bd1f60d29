"""What a line says about its severity, and that a search for a severity finds the same lines."""

import pytest

from trainshed.core.jobs.severity_words import LEVELS, severity_expression, severity_said
from trainshed.wire.log_lines import regex_pattern

LINES = [
    ("step 1 loss 0.3", "DEFAULT"),
    ("WARNING:root:it gets warm", "WARNING"),
    ("2026-11-17 09:00:00,123 - train - ERROR - no", "ERROR"),
    ("[INFO] fine", "INFO"),
    ("ValueError: bad", "ERROR"),
    ("train.py:3: UserWarning: old", "WARNING"),
    ("Traceback (most recent call last):", "ERROR"),
    ('{"severity": "WARN", "message": "an ERROR"}', "WARNING"),
    ('{"level": "info", "message": "an ERROR"}', "INFO"),
    ("FATAL: gone", "CRITICAL"),
    ("the error rate is 0.3", "DEFAULT"),
    ("x" * 300 + " ERROR", "DEFAULT"),
    ("DEBUGGER attached", "DEFAULT"),
]


@pytest.mark.parametrize(("text", "severity"), LINES)
def test_a_line_says_its_severity_in_the_words_of_logging_libraries(text: str, severity: str) -> None:
    assert severity_said(text) == severity


@pytest.mark.parametrize("least", [level for level, _ in LEVELS])
def test_a_search_for_a_severity_finds_what_says_it_or_more(least: str) -> None:
    ranks = ["DEFAULT", *(level for level, _ in LEVELS)]
    pattern = regex_pattern(severity_expression(least), is_exact=True)
    for text, severity in LINES:
        is_severe = ranks.index(severity) >= ranks.index(least)
        assert (pattern.search(text.encode(), 0) is not None) is is_severe, text
