"""SqlNoticeStore: implements `core.notice_port.NoticeStore` with SQL.

SqlStore makes it and asks it at each write of a status what is to be told. Channels are in memory: a server
without any pays for one look at an empty dictionary. Marks of deliveries are not flushed, because a notice
may be delivered twice.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from trainshed.core.errors import AlreadyExists, Exhausted, NotFound
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job, Status
from trainshed.core.notice import (
    GIVEN_UP_AFTER,
    MOST_CHANNELS,
    MOST_WAITING,
    ChannelFigures,
    Notice,
    NoticeChannel,
    WaitingNotice,
    notices_of,
)
from trainshed.store.codec import dumps, loads, read_time, write_time
from trainshed.store.connection import SqlConnection, SqlIntegrityError, insert_into
from trainshed.store.tables import NOTICE_CHANNELS
from trainshed.store.unreadable import Row, read_rows

Read = Callable[[Callable[[SqlConnection], Any]], Awaitable[Any]]
QueuedNotice = tuple[str, Notice]  # the id of the channel, and what waits for it

_INSERT_CHANNEL = insert_into("notice_channels", NOTICE_CHANNELS)
_CHANNELS = "SELECT id, body FROM notice_channels ORDER BY created_at, id"
_COUNT = "SELECT COUNT(*) FROM notice_channels"
_DELETE_CHANNEL = "DELETE FROM notice_channels WHERE id = :of_channel"
_DELETE_ITS_NOTICES = "DELETE FROM notices WHERE channel = :of_channel"
# A channel that was deleted meanwhile gets none, and one that has this notice no second.
_INSERT = """
    INSERT INTO notices (channel, id, job, at, due_at, tries, body)
    SELECT id, :notice, :job, :at, :at, 0, :body FROM notice_channels WHERE id = :of_channel
    ON CONFLICT DO NOTHING
"""
_DROP_OLDEST = """
    DELETE FROM notices WHERE channel = :of_channel AND (at, id) <= (
        SELECT at, id FROM notices WHERE channel = :of_channel ORDER BY at DESC, id DESC LIMIT 1 OFFSET :most
    )
"""
_DROP_OLD = "DELETE FROM notices WHERE channel = :of_channel AND at <= :before"
_COUNT_DROPPED = "UPDATE notice_channels SET given_up = given_up + :dropped WHERE id = :of_channel"
# More than one, because rows that are damaged are passed over.
_FIRST = """
    SELECT id, due_at, tries, body FROM notices AS n
    WHERE channel = :of_channel AND NOT EXISTS (
        SELECT 1 FROM notices AS e
        WHERE e.channel = n.channel AND e.job = n.job AND e.job <> '' AND (e.at, e.id) < (n.at, n.id)
    )
    ORDER BY due_at, at, id LIMIT 5
"""
_DELETE = "DELETE FROM notices WHERE channel = :of_channel AND id = :notice"
_SUCCEEDED = "UPDATE notice_channels SET last_success_at = :at WHERE id = :of_channel"
_POSTPONE = """
    UPDATE notices SET due_at = :due_at, tries = tries + 1 WHERE channel = :of_channel AND id = :notice
"""
_FAILED = "UPDATE notice_channels SET last_error_at = :at, last_error = :error WHERE id = :of_channel"
_FIGURES = """
    SELECT id, (SELECT COUNT(*) FROM notices WHERE channel = notice_channels.id), given_up, last_success_at,
        last_error_at, last_error
    FROM notice_channels
"""


class NoticeWrite(Protocol):
    """`SqlStore._write`: runs inside a transaction, and calls `then` after the commit."""

    async def __call__(
        self, run: Callable[[SqlConnection], Any], then: Callable[[Any], None], flush: bool = True
    ) -> Any: ...


class SqlNoticeStore:
    def __init__(self, read: Read, write: NoticeWrite) -> None:
        self._read, self._write = read, write
        self._channels: dict[str, NoticeChannel] = {}
        self._followers: list[Callable[[str], None]] = []

    async def start(self) -> None:
        self._channels = {channel.id: channel for channel in await self._read(_every)}

    @property
    def channels(self) -> Mapping[str, NoticeChannel]:
        return self._channels

    def on_queued(self, follow: Callable[[str], None]) -> None:
        self._followers.append(follow)

    def wanted(self, job: Job, status: Status, events: Sequence[Event]) -> tuple[QueuedNotice, ...]:
        """What a write of this status is to queue."""
        return self._for_channels(notices_of(job, status, events)) if self._channels else ()

    def tell(self, queued: Iterable[QueuedNotice]) -> None:
        """These were committed."""
        for channel in {channel for channel, _ in queued}:
            for follow in self._followers:
                follow(channel)

    async def insert_channel(self, channel: NoticeChannel) -> None:
        def remember(_: object) -> None:
            self._channels = {**self._channels, channel.id: channel}

        await self._write(lambda connection: _insert_channel(connection, channel), remember)

    async def delete_channel(self, channel: NoticeChannel) -> None:
        def forget(_: object) -> None:
            self._channels = {id: other for id, other in self._channels.items() if id != channel.id}

        await self._write(lambda connection: _delete_channel(connection, channel), forget)

    async def figures(self) -> Mapping[str, ChannelFigures]:
        return {row[0]: _to_figures(row) for row in await self._read(lambda c: c.rows(_FIGURES))}

    async def queue(self, notice: Notice) -> None:
        if queued := self._for_channels((notice,)):
            await self._write(lambda connection: insert(connection, queued), lambda _: self.tell(queued))

    async def first(self, channel: str) -> WaitingNotice | None:
        waiting = await self._read(
            lambda c: read_rows(c.rows(_FIRST, {"of_channel": channel}), _to_waiting, _name_of_notice)
        )
        return waiting[0] if waiting else None

    async def delivered(self, channel: str, notice: str, now: datetime) -> None:
        values = {"of_channel": channel, "notice": notice, "at": write_time(now)}

        def run(connection: SqlConnection) -> None:
            connection.execute(_DELETE, values)
            connection.execute(_SUCCEEDED, values)

        await self._write(run, _nothing, False)

    async def failed(self, channel: str, notice: str, error: str, now: datetime, due_at: datetime) -> int:
        def run(connection: SqlConnection) -> int:
            values = {"of_channel": channel, "notice": notice, "error": error, "at": write_time(now)}
            connection.execute(_POSTPONE, values | {"due_at": write_time(due_at)})
            connection.execute(_FAILED, values)
            before = {"of_channel": channel, "before": write_time(now - GIVEN_UP_AFTER)}
            return _count_dropped(connection, channel, connection.execute(_DROP_OLD, before))

        return await self._write(run, _nothing, False)

    def _for_channels(self, notices: Iterable[Notice]) -> tuple[QueuedNotice, ...]:
        return tuple((id, n) for n in notices for id, channel in self._channels.items() if channel.wants(n))


def insert(connection: SqlConnection, queued: Sequence[QueuedNotice]) -> None:
    """Keep notices inside the transaction of what they tell."""
    for channel, notice in queued:
        at = write_time(notice.at)
        values = {"of_channel": channel, "notice": notice.id, "job": notice.job, "at": at}
        connection.execute(_INSERT, values | {"body": dumps(notice)})
        dropped = connection.execute(_DROP_OLDEST, {"of_channel": channel, "most": MOST_WAITING})
        _count_dropped(connection, channel, dropped)


def _count_dropped(connection: SqlConnection, channel: str, dropped: int) -> int:
    if dropped:
        connection.execute(_COUNT_DROPPED, {"of_channel": channel, "dropped": dropped})
    return dropped


def _insert_channel(connection: SqlConnection, channel: NoticeChannel) -> None:
    row = connection.row(_COUNT)
    if row is not None and row[0] >= MOST_CHANNELS:
        raise Exhausted(
            f"The server has {row[0]} channels of notices already, which is the most: remove one."
        )
    values = {
        "id": channel.id,
        "project": channel.project,
        "name": channel.key,
        "created_at": write_time(channel.created_at),
        "body": dumps(channel),
        "given_up": 0,
        "last_success_at": None,
        "last_error_at": None,
        "last_error": "",
    }
    try:
        connection.execute(_INSERT_CHANNEL, values)
    except SqlIntegrityError as error:
        where = f"project {channel.project}" if channel.project else "this server"
        raise AlreadyExists(f"There is a channel {channel.name} of {where} already.") from error


def _delete_channel(connection: SqlConnection, channel: NoticeChannel) -> None:
    connection.execute(_DELETE_ITS_NOTICES, {"of_channel": channel.id})
    if connection.execute(_DELETE_CHANNEL, {"of_channel": channel.id}) != 1:
        raise NotFound(f"There is no channel {channel.name} any more.")


def _every(connection: SqlConnection) -> tuple[NoticeChannel, ...]:
    return read_rows(connection.rows(_CHANNELS), lambda row: loads(NoticeChannel, row[1]), _name_of_channel)


def _to_waiting(row: Row) -> WaitingNotice:
    return WaitingNotice(notice=loads(Notice, row[3]), due_at=read_time(row[1]), tries=row[2])


def _to_figures(row: Row) -> ChannelFigures:
    _, waiting, given_up, success, failure, error = row
    return ChannelFigures(
        waiting=waiting,
        given_up=given_up,
        last_success_at=read_time(success) if success else None,
        last_error_at=read_time(failure) if failure else None,
        last_error=error,
    )


def _name_of_channel(row: Row) -> str:
    return f"channel of notices {row[0]}"


def _name_of_notice(row: Row) -> str:
    return f"notice {row[0]}"


def _nothing(_: object) -> None:
    """Memory has nothing of it."""
