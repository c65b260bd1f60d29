"""Notices in memory: keeps the promises of `core.notice_port.NoticeStore`, as a part of `MemoryStore`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from trainshed.core.errors import AlreadyExists, Exhausted, NotFound
from trainshed.core.notice import (
    GIVEN_UP_AFTER,
    MOST_CHANNELS,
    MOST_WAITING,
    ChannelFigures,
    Notice,
    NoticeChannel,
    WaitingNotice,
)


class MemoryNoticeStore:
    def __init__(self) -> None:
        self.channels: dict[str, NoticeChannel] = {}
        self._waiting: dict[str, dict[str, WaitingNotice]] = {}
        self._figures: dict[str, ChannelFigures] = {}
        self._followers: list[Callable[[str], None]] = []

    def on_queued(self, follow: Callable[[str], None]) -> None:
        self._followers.append(follow)

    def keep(self, notices: Iterable[Notice]) -> None:
        """Queue them for the channels that want them. `MemoryStore.write` calls this with its commit."""
        for notice in notices:
            for channel in [channel for channel in self.channels.values() if channel.wants(notice)]:
                waiting = self._waiting[channel.id]
                waiting.setdefault(notice.id, WaitingNotice(notice=notice, due_at=notice.at))
                ordered = sorted(waiting.values(), key=lambda item: item.notice.order)
                self._drop(channel.id, ordered[:-MOST_WAITING])
                for follow in self._followers:
                    follow(channel.id)

    async def insert_channel(self, channel: NoticeChannel) -> None:
        await asyncio.sleep(0)
        if len(self.channels) >= MOST_CHANNELS:
            raise Exhausted("The server has as many channels of notices as it may have: remove one.")
        if any((c.project, c.key) == (channel.project, channel.key) for c in self.channels.values()):
            raise AlreadyExists(f"There is a channel {channel.name} already.")
        self.channels[channel.id] = channel
        self._waiting[channel.id], self._figures[channel.id] = {}, ChannelFigures()

    async def delete_channel(self, channel: NoticeChannel) -> None:
        await asyncio.sleep(0)
        if channel.id not in self.channels:
            raise NotFound(f"There is no channel {channel.name} any more.")
        for kept in (self.channels, self._waiting, self._figures):
            del kept[channel.id]

    async def figures(self) -> Mapping[str, ChannelFigures]:
        await asyncio.sleep(0)
        return {id: replace(fig, waiting=len(self._waiting[id])) for id, fig in self._figures.items()}

    async def queue(self, notice: Notice) -> None:
        await asyncio.sleep(0)
        self.keep((notice,))

    async def first(self, channel: str) -> WaitingNotice | None:
        await asyncio.sleep(0)
        ordered = sorted(self._waiting.get(channel, {}).values(), key=lambda item: item.notice.order)
        heads: dict[str, WaitingNotice] = {}
        for item in ordered:
            heads.setdefault(item.notice.job or item.notice.id, item)
        return min(heads.values(), key=lambda item: (item.due_at, item.notice.order), default=None)

    async def delivered(self, channel: str, notice: str, now: datetime) -> None:
        await asyncio.sleep(0)
        if channel in self.channels:
            self._waiting[channel].pop(notice, None)
            self._figures[channel] = replace(self._figures[channel], last_success_at=now)

    async def failed(self, channel: str, notice: str, error: str, now: datetime, due_at: datetime) -> int:
        await asyncio.sleep(0)
        if channel not in self.channels:
            return 0
        waiting = self._waiting[channel]
        if notice in waiting:
            waiting[notice] = replace(waiting[notice], tries=waiting[notice].tries + 1, due_at=due_at)
        self._figures[channel] = replace(self._figures[channel], last_error=error, last_error_at=now)
        return self._drop(
            channel, [item for item in waiting.values() if item.notice.at <= now - GIVEN_UP_AFTER]
        )

    def _drop(self, channel: str, dropped: list[WaitingNotice]) -> int:
        for item in dropped:
            del self._waiting[channel][item.notice.id]
        figures = self._figures[channel]
        self._figures[channel] = replace(figures, given_up=figures.given_up + len(dropped))
        return len(dropped)
