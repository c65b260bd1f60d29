"""All errors of the core and the adapters, named by what the caller may do about them.

    TrainshedError
    ├── Invalid            the request is wrong: correct every violation and send it again
    ├── NotFound           the thing is not there (or not yours to see)
    ├── AlreadyExists      the name is taken
    ├── Conflict           the thing changed meanwhile, or its state forbids this
    ├── Forbidden          you are known, or unknown, and may not
    ├── Unauthenticated    the credentials are wrong
    ├── Exhausted          a ceiling is reached: wait, or ask for less
    └── Unavailable        try again: nothing permanent is wrong
        ├── NotYet         it is being prepared; a hint follows when it is ready
        └── Hindered       a known obstacle is in the way of a launch

The docstring of a class is its default message. Only `wire/status.py` turns these into HTTP numbers.
A failed *job* is none of these: it is an Event with a Reason.
"""

from dataclasses import dataclass

from trainshed.core.obstacle import Obstacle


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request: the path of the field and a sentence about it."""

    field: str
    description: str

    @property
    def sentence(self) -> str:
        """The description, behind its field unless it is a whole sentence or begins with the field."""
        is_whole = not self.field or self.description[:1].isupper() or self.description.startswith(self.field)
        return self.description if is_whole else f"{self.field} {self.description}"


class TrainshedError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        self.message = message or (self.__doc__ or "").strip()
        super().__init__(self.message)


class Invalid(TrainshedError):
    """The request is not valid."""

    def __init__(self, violations: tuple[Violation, ...], message: str | None = None) -> None:
        self.violations = violations
        super().__init__(message or " ".join(v.sentence for v in violations) or None)


class NotFound(TrainshedError):
    """There is no such thing."""


class AlreadyExists(TrainshedError):
    """A thing of that name exists already."""


class Conflict(TrainshedError):
    """The thing is not in a state that allows this."""


class Forbidden(TrainshedError):
    """You may not do this."""


class Unauthenticated(TrainshedError):
    """The credentials are missing or wrong."""


class Exhausted(TrainshedError):
    """A limit is reached."""


class Unavailable(TrainshedError):
    """The service cannot do this right now; try again."""


class NotYet(Unavailable):
    """This is being made ready."""


class Hindered(Unavailable):
    """Something is in the way of a launch."""

    def __init__(self, obstacle: Obstacle) -> None:
        self.obstacle = obstacle
        super().__init__(obstacle.message)
