"""Tickets: words that are worth something once, within a short time. Shells and sign-ins use them.

They are only in memory. A server that was started again knows none of the tickets before.
"""

import secrets
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from trainshed.core.errors import Exhausted, Forbidden

MOST_TICKETS = 256  # issued and not used yet

T = TypeVar("T")


class Tickets(Generic[T]):
    def __init__(self, purpose: str, life: timedelta) -> None:
        self._purpose, self._life = purpose, life
        self._issued: dict[str, tuple[T, datetime]] = {}

    def issue(self, worth: T, now: datetime) -> tuple[str, datetime]:
        """A new ticket, and until when it can be used."""
        for word in [word for word, (_, until) in self._issued.items() if until < now]:
            del self._issued[word]
        if len(self._issued) >= MOST_TICKETS:
            raise Exhausted(
                f"{MOST_TICKETS} tickets for {self._purpose} were not used yet; try again in a moment."
            )
        word, until = secrets.token_urlsafe(24), now + self._life
        self._issued[word] = worth, until
        return word, until

    def redeem(self, word: str, now: datetime) -> T:
        """What the ticket is worth. It cannot be used again."""
        worth = self.look(word, now)
        del self._issued[word]
        return worth

    def look(self, word: str, now: datetime) -> T:
        """The same, and it can be used still."""
        issued = self._issued.get(word)
        if issued is None:
            raise Forbidden(f"This ticket for {self._purpose} is unknown or was used; ask for another.")
        worth, until = issued
        if until < now:
            raise Forbidden(f"This ticket for {self._purpose} is too old; ask for another.")
        return worth
