"""What a terminal is given of foreign text."""

import pytest

from trainshed.cli.paint import clean

CASES = {
    "plain\ttext\n": "plain\ttext\n",
    "\x1b]0;title\x07name": "name",
    "\x1b[2J\x1b[Hname": "name",
    "a\rb": "a^Mb",
    "a\x9bb\x00": "a\\x9bb^@",
    "a\u202eb": "a\\u202eb",
    "a\udc80b": "a\ufffdb",
    "\x1b[31mred\x1b[0m": "\x1b[31mred\x1b[0m",
    "\x1b[31mred\nnext": "\x1b[31mred\x1b[0m\nnext",
    "\x1b[8mhidden": "hidden",
    "\x1b": "^[",
}


@pytest.mark.parametrize("text", CASES)
def test_lines_and_our_colours_stay_and_nothing_else_is_obeyed(text: str):
    assert clean(text) == CASES[text]


def test_what_was_cleaned_is_clean():
    for text in CASES.values():
        assert clean(text) == text
