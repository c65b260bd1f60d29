"""What a command prints passes the guard of its terminal (cli/paint.py), save in the files named here."""

import re

from tests.rules.source import PACKAGE, modules

# Each writes bytes: what is fetched, what a job wrote, or a shell's own terminal. See their docstrings.
WRITES_BYTES = {
    "cli/ai/records.py",
    "cli/carry.py",
    "cli/follow.py",
    "cli/images.py",
    "cli/paint.py",
    "cli/storage.py",
    "cli/terminal.py",
}
_PAST = re.compile(r"(?<!stdin)\.buffer\b|os\.write\(|__std(?:out|err)__")


def test_no_other_file_of_the_command_line_writes_past_the_guard_of_a_terminal():
    places = [
        (f"{folder}/{module.name}", module)
        for folder in ("cli", "dialects")
        for module in modules(PACKAGE / folder)
    ]
    past = {name for name, module in places if _PAST.search(module.text)}
    assert past == WRITES_BYTES
