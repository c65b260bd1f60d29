"""What is said beside the output, and what keeps a command from going on, before click is there for it."""

import sys

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Sequence


def say(text: str, end: str = "\n") -> None:
    """For people, on stderr; behind what was printed so far. Nobody may be there to read it."""
    for stream, output in ((sys.stdout, ""), (sys.stderr, text + end)):
        if stream is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed when Python started
            stream.write(output)
            stream.flush()


class EarlyError(Exception):
    """One clear line, details below it, and the code to exit with: 2 where the command line was wrong."""

    def __init__(self, message: str, details: "Sequence[str]" = (), *, code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.code = code
