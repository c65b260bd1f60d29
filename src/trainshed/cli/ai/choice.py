"""Which jobs a `list` shows. gcloud itself filters, sorts and cuts what the server lists; so do we."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import click

from trainshed.cli.ai.condition import Condition, parse
from trainshed.client import Json

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Choice:
    condition: Condition | None = None
    keys: tuple[str, ...] = ()  # to sort by, ~KEY for the reverse
    limit: int | None = None

    @property
    def asked(self) -> int | None:
        """How many the server need tell: no more than are shown, unless there is something to choose from."""
        return None if self.condition or self.keys else self.limit

    def of(self, candidates: Iterable[Json]) -> list[Json]:
        from trainshed.cli.ai.path import Path

        jobs = [job for job in candidates if self.condition is None or self.condition(job)]
        for key in reversed(self.keys):  # a stable sort by the last key first sorts by all
            path = Path.parse(key.lstrip("~"))
            jobs = sorted(jobs, key=path.order, reverse=key.startswith("~"))
        return list(islice(jobs, self.limit))


def choosing(function: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the flags that choose, and the Choice they make as `choice`."""

    @click.option("--filter", "where", metavar="EXPRESSION", help="Such as 'state=… AND labels.team=a'.")
    @click.option("--sort-by", metavar="KEY,...", default="", help="Order by these; ~KEY for the reverse.")
    @click.option("--limit", metavar="N", type=click.IntRange(1), help="At most N.")
    @click.option(
        "--page-size", metavar="N", type=click.IntRange(1), expose_value=False, help="Taken, without effect."
    )
    @functools.wraps(function)
    def wrapped(*args: Any, where: str | None, sort_by: str, limit: int | None, **kwargs: Any) -> R:
        from trainshed.cli.ai.listing import words

        choice = Choice(parse(where) if where else None, tuple(words(sort_by, "--sort-by")), limit)
        return function(*args, choice=choice, **kwargs)

    return wrapped
