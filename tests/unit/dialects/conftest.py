"""The terminal and the scripted server of the command line's tests, for the dialects' commands."""

from tests.unit.cli.conftest import script, terminal

__all__ = ["script", "terminal"]
