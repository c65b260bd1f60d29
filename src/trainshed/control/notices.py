"""NoticeSender: delivers what waits for channels, each channel by itself, until it is taken or given up.

A work queue calls `send` for a channel, one call at a time, many channels at once. A notice is marked after
the receiver has taken it, so a server that dies in between sends it again. A receiver that does not answer
makes its own channel pause, ever longer; nobody else waits for it. It never raises for a receiver's fault.
Where the server has no channels, nothing here ever runs.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainshed.control.queue import WorkQueue
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.notice import Notice, NoticeChannel, NoticeWay, WaitingNotice, pause_after
from trainshed.core.notice_message import mail_of, request_of
from trainshed.core.notice_port import CarrierAnswer, Delivery, NoticeCarrier, NoticeStore
from trainshed.core.ports import Clock

log = logging.getLogger(__name__)

MOST_IN_A_ROW = 50  # of one channel; then others have their turn
TAKEN = CarrierAnswer(Delivery.DELIVERED, "")
LOST = "its address is no longer in the folder `notices` of the home: remove the channel and add it again"


@dataclass(slots=True, kw_only=True)
class NoticeSender:
    store: NoticeStore
    secrets: SecretStore  # addresses and secrets, by the ids of channels
    carrier: NoticeCarrier
    clock: Clock
    queue: WorkQueue
    server: str  # this server's address, for people
    _failures: dict[str, int] = field(default_factory=dict[str, int])  # in a row, by channel
    _paused: dict[str, datetime] = field(default_factory=dict[str, datetime])
    _taken: dict[str, str] = field(default_factory=dict[str, str])  # the notice that each channel took last
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Go on with what an earlier server left."""
        self.store.on_queued(self.queue.hint)
        self.queue.serve(self.send)
        for channel in self.store.channels:
            self.queue.hint(channel)

    async def close(self) -> None:
        """Wait for no receiver: what is being sent now is sent again by the next server."""
        self._closing.set()
        await self.queue.close()

    async def send(self, channel_id: str) -> datetime | None:
        """Deliver what is due; returns when to look again."""
        for _ in range(MOST_IN_A_ROW):
            channel = self.store.channels.get(channel_id)
            if channel is None:
                self._forget(channel_id)
                self._taken.pop(channel_id, None)
                return None
            now = self.clock.now()
            if (until := self._paused.get(channel_id, now)) > now:
                return until
            waiting = await self.store.first(channel_id)
            if waiting is None or waiting.due_at > now:
                return waiting.due_at if waiting else None
            answer = TAKEN
            if self._taken.get(channel_id) != waiting.notice.id:
                answer = await self._deliver_unless_closing(channel, waiting.notice)
            if answer is None:
                return None
            await self._mark(channel, waiting, answer)
        return self.clock.now()

    async def deliver(self, channel: NoticeChannel, notice: Notice) -> CarrierAnswer:
        """One try. `trainshed notify test` calls it too."""
        try:
            kept: Mapping[str, str] = (await self.secrets.read(channel.id)).get(0, {})
        except Unavailable as error:
            return CarrierAnswer(Delivery.AWAY, error.message)
        address = kept.get("address", "")
        if not address:
            return CarrierAnswer(Delivery.AWAY, LOST)
        if channel.way is NoticeWay.MAIL:
            return await self.carrier.mail(address, mail_of(notice, self.server))
        request = request_of(channel, notice, kept.get("secret", ""), self.server, self.clock.now())
        return await self.carrier.post(address, request)

    def resume(self, channel: str) -> None:
        """The receiver answers again: do not wait for the end of the pause."""
        self._forget(channel)
        self.queue.hint(channel)

    async def _deliver_unless_closing(self, channel: NoticeChannel, notice: Notice) -> CarrierAnswer | None:
        delivery = asyncio.create_task(self.deliver(channel, notice))
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait((delivery, closing), return_when=asyncio.FIRST_COMPLETED)
            return delivery.result() if delivery.done() else None
        finally:
            delivery.cancel()
            closing.cancel()

    async def _mark(self, channel: NoticeChannel, waiting: WaitingNotice, answer: CarrierAnswer) -> None:
        notice, now = waiting.notice, self.clock.now()
        if answer.delivery is Delivery.DELIVERED:
            self._forget(channel.id)
            self._taken[channel.id] = notice.id  # if it cannot be marked now, it is not sent again for that
            await self.store.delivered(channel.id, notice.id, now)
            return
        due_at = now + pause_after(waiting.tries + 1)
        if answer.delivery is Delivery.AWAY:  # the channel pauses as a whole, and the order stays
            failures = self._failures[channel.id] = self._failures.get(channel.id, 0) + 1
            self._paused[channel.id], due_at = now + pause_after(failures), waiting.due_at
        dropped = await self.store.failed(channel.id, notice.id, answer.words, now, due_at)
        log.warning("notice %s was not taken by channel %s: %s", notice.id, channel.name, answer.words)
        if dropped:
            log.warning("channel %s: %d notices were given up, nobody took them", channel.name, dropped)

    def _forget(self, channel: str) -> None:
        self._failures.pop(channel, None)
        self._paused.pop(channel, None)
