"""Ports of notices: the store that keeps channels and what waits for them, and the carrier that delivers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from trainshed.core.notice import ChannelFigures, Notice, NoticeChannel, WaitingNotice
from trainshed.core.notice_message import NoticeMail, NoticeRequest


class NoticeStore(Protocol):
    """Remembers channels, and the notices that each of them has not taken. It lies in the store of jobs.

    1. a key is taken once in a project: AlreadyExists. Exhausted above MOST_CHANNELS.
    2. `Store.write` keeps a notice for each channel that wants one, together with the status or not at all,
       and flushed. Where there are no channels it keeps nothing and costs nothing.
    3. on_queued tells the id of each channel that has a new notice, after the commit.
    4. a notice is kept for a channel once, until `delivered` or until it is given up.
    5. `first` gives the notice that is due first, and of a job never a later one before an earlier one.
    6. a channel has at most MOST_WAITING notices, none older than GIVEN_UP_AFTER after `failed`; what is
       dropped for it is counted.
    7. deleting a channel drops what waits for it.
    """

    @property
    def channels(self) -> Mapping[str, NoticeChannel]:
        """All channels by id, from memory."""
        ...

    def on_queued(self, follow: Callable[[str], None]) -> None: ...

    async def insert_channel(self, channel: NoticeChannel) -> None: ...

    async def delete_channel(self, channel: NoticeChannel) -> None:
        """NotFound where it is gone already."""
        ...

    async def figures(self) -> Mapping[str, ChannelFigures]:
        """Of all channels, by id."""
        ...

    async def queue(self, notice: Notice) -> None:
        """Keep a notice that is about no job, such as that of a budget, for the channels that want it."""
        ...

    async def first(self, channel: str) -> WaitingNotice | None:
        """The notice that is due first, now or later; None where none waits."""
        ...

    async def delivered(self, channel: str, notice: str, now: datetime) -> None: ...

    async def failed(self, channel: str, notice: str, error: str, now: datetime, due_at: datetime) -> int:
        """One more try has failed; the next is due then. How many notices were given up."""
        ...


class Delivery(StrEnum):
    DELIVERED = "DELIVERED"
    REFUSED = "REFUSED"  # the receiver does not take this notice: others may succeed
    AWAY = "AWAY"  # nobody answers, or the receiver fails: others would fail too


@dataclass(frozen=True, slots=True)
class CarrierAnswer:
    delivery: Delivery
    words: str  # what the receiver answered, or why it did not; short, on one line


class NoticeCarrier(Protocol):
    """Carries messages outside. It never raises for a receiver's fault, and never blocks the event loop.

    1. it follows no redirect, and reads a bounded part of an answer.
    2. it answers within a bounded time, whatever the receiver does.
    """

    @property
    def sends_mail(self) -> bool: ...

    async def post(self, url: str, request: NoticeRequest) -> CarrierAnswer: ...

    async def mail(self, address: str, mail: NoticeMail) -> CarrierAnswer: ...
