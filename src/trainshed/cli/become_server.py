"""Becoming the server, in place of the command that was asked for it: `trainshed up` waits for nothing else.

It imports no click, which takes as long as a bare Python to start.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from trainshed.settings.table import DATABASE_VARIABLE, Settings, SettingsError, resolve


def swift(args: Sequence[str]) -> None:
    """Return where the words are not settings alone, or are wrong: click reads them then, and says so."""
    try:
        settings, _ = resolve(args)
    except SettingsError:
        return
    become_server(settings)


def become_server(settings: Settings) -> NoReturn:
    if settings.database:
        os.environ[DATABASE_VARIABLE] = settings.database
    # -P: a file named like a module in the current folder must not become part of the server.
    program = [sys.executable, "-P", "-m", "trainshed.server", *settings.to_args()]
    sys.stdout.flush()
    os.execv(sys.executable, program)
