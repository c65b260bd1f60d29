"""What a replica of the fake backend does: a few words in the Launch's args instead of a program.

exit CODE [SECONDS]     end with a code, at once or after a while
die SIGNAL [SECONDS]    end by a signal
print TEXT              write TEXT to stdout and exit 0
find NAME               exit 0 where NAME is one of its job's host names, else 1
sleep                   run until stopped (also what any other words mean)
stubborn                the same, and ignore SIGTERM
count                   the same, and write "term" at each SIGTERM
escape                  sleep, and leave a child behind that no parent knows
abandon CODE            leave such a child behind and exit
missing, forbidden      cannot be started
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from trainshed.core.jobs.replica import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    exit: Exit | None = None  # how it ends by itself; None: not
    after: timedelta = timedelta(0)
    out: str = ""
    err: str = ""
    on_term: str = ""
    obeys: bool = True  # ends at SIGTERM


def read_program(words: tuple[str, ...], names: Iterable[str] = ()) -> Program:
    """`names` are the host names that the program knows."""
    match words:
        case ("find", name):
            return Program(exit=Exit(code=0 if name in names else 1))
        case ("exit", code, *rest):
            return Program(exit=Exit(code=int(code)), after=_seconds(rest))
        case ("die", number, *rest):
            return Program(exit=Exit(signal=int(number)), after=_seconds(rest))
        case ("print", text):
            return Program(exit=Exit(code=0), out=text)
        case ("abandon", code):
            return Program(exit=Exit(code=int(code)), out="ready\n")
        case ("stubborn",):
            return Program(out="ready\n", obeys=False)
        case ("count",):
            return Program(out="ready\n", on_term="term\n", obeys=False)
        case ("missing",):
            return Program(exit=Exit(code=127), err="cannot run 'missing': No such file or directory\n")
        case ("forbidden",):
            return Program(exit=Exit(code=126), err="cannot run 'forbidden': Permission denied\n")
        case _:
            return Program(out="ready\n")


def _seconds(rest: list[str]) -> timedelta:
    return timedelta(seconds=float(rest[0])) if rest else timedelta(0)
