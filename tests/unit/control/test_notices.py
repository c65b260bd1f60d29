"""The sender: each channel by itself, again and again, until a notice is taken or given up."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.builders import a_job, at
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from tests.unit.core.test_notice import a_channel
from trainshed.control.notices import NoticeSender
from trainshed.control.queue import WorkQueue
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import JobState, Status
from trainshed.core.notice import MOST_CHANNELS, ChannelFigures, NoticeWay
from trainshed.core.notice_message import NoticeMail, NoticeRequest
from trainshed.core.notice_port import CarrierAnswer, Delivery
from trainshed.testing.secrets import MemorySecrets
from trainshed.testing.store import MemoryStore

TAKEN, REFUSED = CarrierAnswer(Delivery.DELIVERED, "200 OK"), CarrierAnswer(Delivery.REFUSED, "400 No")
AWAY = CarrierAnswer(Delivery.AWAY, "Connection refused")
Answer = Callable[[str], CarrierAnswer | None]  # to a notice's id; None: never


@dataclass
class Receivers:
    """A carrier to receivers that answer as the test says, by their addresses."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    got: list[tuple[float, str, str]] = field(default_factory=list[tuple[float, str, str]])
    sends_mail: bool = True

    async def post(self, url: str, request: NoticeRequest) -> CarrierAnswer:
        return await self._take(url, request.headers.get("Webhook-Id", ""))

    async def mail(self, address: str, mail: NoticeMail) -> CarrierAnswer:
        return await self._take(address, mail.id)

    async def _take(self, address: str, notice: str) -> CarrierAnswer:
        self.got.append((asyncio.get_running_loop().time(), address, notice))
        answer = self.answers.get(address, lambda _: TAKEN)(notice)
        if answer is None:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")
        return answer


class World:
    def __init__(self) -> None:
        self.store, self.receivers, self.secrets = MemoryStore(), Receivers(), MemorySecrets()
        self.sender = self.new_sender()

    def new_sender(self) -> NoticeSender:
        clock = SteppedClock()
        return NoticeSender(
            store=self.store.notices,
            secrets=self.secrets,
            carrier=self.receivers,
            clock=clock,
            queue=WorkQueue(clock, MOST_CHANNELS),
            server="http://here",
        )

    async def add(self, name: str, way: NoticeWay = NoticeWay.WEBHOOK) -> None:
        await self.secrets.keep(name, {0: {"address": f"to-{name}", "secret": "s" * 16}})
        await self.store.notices.insert_channel(a_channel(id=name, name=name, way=way))

    async def end(self, number: int, seconds: float = 0) -> str:
        """A job ends; the id of its notice."""
        job = await self.store.insert(a_job(id=str(number)), ())
        await self.store.write(job, Status(state=JobState.SUCCEEDED, updated_at=at(seconds)))
        return f"{number}-2-ended"

    async def figures(self, channel: str) -> ChannelFigures:
        return (await self.store.notices.figures())[channel]


@in_stepped_time
async def test_what_ends_is_told_at_once_and_once_to_each_channel():
    world = World()
    for name, way in (("a", NoticeWay.WEBHOOK), ("b", NoticeWay.MAIL)):
        await world.add(name, way)
    world.sender.begin()
    ids = [await world.end(number) for number in (1, 2)]
    await asyncio.sleep(5)
    got = sorted((address, notice) for _, address, notice in world.receivers.got)
    assert got == sorted((address, id) for address in ("to-a", "to-b") for id in ids)
    assert (await world.figures("a")).waiting == 0
    assert (await world.figures("a")).last_success_at == at(0)
    await world.sender.close()


@in_stepped_time
async def test_a_receiver_that_is_away_is_asked_ever_more_rarely_and_gets_all_in_order_when_it_is_back():
    world = World()
    await world.add("a")
    back = 1000.0
    loop = asyncio.get_running_loop()
    world.receivers.answers["to-a"] = lambda _: TAKEN if loop.time() >= back else AWAY
    world.sender.begin()
    ids = [await world.end(number, number / 10) for number in range(5)]
    await asyncio.sleep(back + 1100)
    tries = [when for when, *_ in world.receivers.got if when < back]
    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert pauses[:6] == pytest.approx([1, 2, 4, 8, 16, 32], abs=0.01)
    assert len(tries) == 10
    taken = [notice for when, _, notice in world.receivers.got if when >= back]
    assert taken == ids
    figures = await world.figures("a")
    assert (figures.waiting, figures.given_up, figures.last_error) == (0, 0, "Connection refused")
    await world.sender.close()


@in_stepped_time
async def test_after_a_day_a_notice_is_given_up_and_counted():
    world = World()
    await world.add("a")
    world.receivers.answers["to-a"] = lambda _: AWAY
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(timedelta(hours=23).total_seconds())
    assert (await world.figures("a")).waiting == 1
    await asyncio.sleep(timedelta(hours=3).total_seconds())
    figures = await world.figures("a")
    assert (figures.waiting, figures.given_up) == (0, 1)
    assert len(world.receivers.got) < 50
    await world.sender.close()


@in_stepped_time
async def test_a_notice_that_is_refused_keeps_no_other_back():
    world = World()
    await world.add("a")
    world.receivers.answers["to-a"] = lambda notice: REFUSED if notice == "1-2-ended" else TAKEN
    world.sender.begin()
    for number in (1, 2, 3):
        await world.end(number, number / 1000)
    await asyncio.sleep(0.5)
    assert [notice for _, _, notice in world.receivers.got] == ["1-2-ended", "2-2-ended", "3-2-ended"]
    await asyncio.sleep(10)
    assert [notice for _, _, notice in world.receivers.got[3:]] == ["1-2-ended"] * 3
    await world.sender.close()


@in_stepped_time
async def test_receivers_that_never_answer_delay_no_other_channel_and_not_the_end_of_the_server():
    world = World()
    for name in [*(f"dead-{number}" for number in range(MOST_CHANNELS - 1)), "a"]:
        await world.add(name)
        if name != "a":
            world.receivers.answers[f"to-{name}"] = lambda _: None
    world.sender.begin()
    ids = [await world.end(number) for number in range(20)]
    await asyncio.sleep(1)
    got = [notice for _, address, notice in world.receivers.got if address == "to-a"]
    assert sorted(got) == sorted(ids)
    before = asyncio.get_running_loop().time()
    await world.sender.close()
    assert asyncio.get_running_loop().time() == before
    assert (await world.figures("dead-0")).waiting == 20


@in_stepped_time
async def test_the_next_server_sends_what_an_earlier_one_left():
    world = World()
    await world.add("a")
    id = await world.end(1)  # no sender has begun
    again = world.new_sender()
    again.begin()
    await asyncio.sleep(1)
    assert [notice for _, _, notice in world.receivers.got] == [id]
    await again.close()


@in_stepped_time
async def test_where_a_mark_cannot_be_written_the_notice_is_not_sent_again_for_that(
    monkeypatch: pytest.MonkeyPatch,
):
    world = World()
    await world.add("a")
    mark, fails = world.store.notices.delivered, [True, True]

    async def flaky(*args: object) -> None:
        if fails:
            fails.pop()
            raise Unavailable("The disk is full.")
        await mark(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(world.store.notices, "delivered", flaky)
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(10)
    assert len(world.receivers.got) == 1
    assert (await world.figures("a")).waiting == 0
    await world.sender.close()


@in_stepped_time
async def test_a_channel_whose_address_is_lost_says_so():
    world = World()
    await world.add("a")
    await world.secrets.remove("a")
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(1)
    assert "add it again" in (await world.figures("a")).last_error
    assert world.receivers.got == []
    await world.sender.close()


@in_stepped_time
async def test_a_removed_channel_is_forgotten_in_the_middle_of_its_pause():
    world = World()
    await world.add("a")
    world.receivers.answers["to-a"] = lambda _: AWAY
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(3.5)
    count = len(world.receivers.got)
    await world.store.notices.delete_channel(world.store.notices.channels["a"])
    await asyncio.sleep(1000)
    assert len(world.receivers.got) == count
    await world.sender.close()


@in_stepped_time
async def test_a_successful_check_ends_the_pause():
    world = World()
    await world.add("a")
    answers = [AWAY] * 8
    world.receivers.answers["to-a"] = lambda _: answers.pop() if answers else TAKEN
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(130)  # the next try is due at 255
    assert not answers
    await world.end(2, 130)
    await asyncio.sleep(1)
    assert len(world.receivers.got) == 8
    world.sender.resume("a")
    await asyncio.sleep(1)
    assert [notice for _, _, notice in world.receivers.got[8:]] == ["1-2-ended", "2-2-ended"]
    await world.sender.close()


@in_stepped_time
async def test_where_there_is_no_channel_nothing_is_kept_and_nobody_wakes():
    world = World()
    world.sender.begin()
    await world.end(1)
    await asyncio.sleep(1)
    assert world.receivers.got == [] and await world.store.notices.figures() == {}
    await world.sender.close()


@in_stepped_time
async def test_a_channel_that_comes_later_hears_what_comes_later():
    world = World()
    world.sender.begin()
    await world.end(1)
    await world.add("a")
    job = await world.store.insert(replace(a_job(id="2"), project="other"), ())
    await world.store.write(job, Status(state=JobState.FAILED))
    id = await world.end(3)
    await asyncio.sleep(1)
    assert [notice for _, _, notice in world.receivers.got] == [id]
    await world.sender.close()
