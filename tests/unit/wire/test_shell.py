"""A shell asked for, and what is said while it is open."""

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.shell_port import Screen
from trainshed.wire.shell import ShellRequest, Words, parse_shell, parse_words


def test_a_wish_names_a_replica_a_command_and_a_screen():
    body = {"task": "workerpool0-1", "command": ["ls", "-l"], "screen": {"rows": 10, "columns": "20"}}
    assert parse_shell(body) == ShellRequest("workerpool0-1", ("ls", "-l"), Screen(10, 20))


def test_all_of_a_wish_may_be_left_out():
    assert parse_shell({}) == ShellRequest("", (), None)
    assert parse_shell({"screen": None}) == ShellRequest("", (), None)


def test_every_violation_of_a_wish_is_told_with_its_path():
    with pytest.raises(Invalid) as refused:
        parse_shell({"command": "ls", "screen": {"rows": 0, "columns": 5000}, "user": "root"})
    found = {one.field for one in refused.value.violations}
    assert found == {"user", "command", "screen.rows", "screen.columns"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"screen": {"rows": 5, "columns": 6}}', Words(screen=Screen(5, 6))),
        ('{"end": true}', Words(end=True)),
        ('{"taken": "70000"}', Words(taken=70000)),
        ("{}", Words()),
    ],
)
def test_words_between_terminals_are_understood(said: str, meant: Words):
    assert parse_words(said) == meant


@pytest.mark.parametrize(
    "said", ["", "no", "[]", "1", '{"other": 1}', '{"screen": {"rows": -1}}', "[" * 100_000]
)
def test_other_words_are_refused(said: str):
    with pytest.raises(Invalid):
        parse_words(said)
