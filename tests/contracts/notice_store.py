"""What every store promises of notices (`core.notice_port.NoticeStore`): inherit it."""

from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import pytest

from tests.contracts.store_values import RUNNING, T0, a_deletion, a_job, an_event, ended
from trainshed.core.errors import AlreadyExists, Conflict, Exhausted, NotFound
from trainshed.core.event import Reason
from trainshed.core.jobs.job import JobState
from trainshed.core.notice import (
    CHOICES,
    GIVEN_UP_AFTER,
    MOST_CHANNELS,
    MOST_WAITING,
    NoticeChannel,
    NoticeKind,
    NoticeWay,
    budget_notice,
)
from trainshed.core.notice_port import NoticeStore
from trainshed.core.ports import Store

SECOND = timedelta(seconds=1)


class StoreWithNotices(Store, Protocol):
    @property
    def notices(self) -> NoticeStore: ...


def a_channel(name: str = "team", **changes: object) -> NoticeChannel:
    channel = NoticeChannel(
        id=f"id-{name}",
        name=name,
        project="p",
        way=NoticeWay.WEBHOOK,
        shown="https://hooks.example/…",
        on=CHOICES,
        created_at=T0,
        owner="Ada \N{SNOWMAN}",
    )
    return replace(channel, **changes)


async def end(store: Store, number: int = 1, state: JobState = JobState.SUCCEEDED, **changes: object) -> str:
    job = await store.insert(a_job(number, **changes), [])
    at = T0 + number * SECOND
    await store.write(job, replace(ended(state), updated_at=at), [an_event("over", at=at)])
    return job.id


async def take(store: StoreWithNotices, channel: str = "id-team") -> list[str]:
    """Deliver all there is; the ids in their order."""
    taken: list[str] = []
    while (waiting := await store.notices.first(channel)) is not None:
        taken.append(waiting.notice.id)
        await store.notices.delivered(channel, waiting.notice.id, T0)
    return taken


class NoticeStoreContract:
    async def test_a_channel_is_found_as_it_was_and_its_name_is_taken_once_in_a_project(
        self, store: StoreWithNotices
    ) -> None:
        channel = a_channel(labels={"team": "vision"}, way=NoticeWay.MAIL)
        await store.notices.insert_channel(channel)
        assert dict(store.notices.channels) == {channel.id: channel}
        with pytest.raises(AlreadyExists, match="team"):
            await store.notices.insert_channel(a_channel(id="another"))
        await store.notices.insert_channel(a_channel(id="another", project=""))
        assert set(store.notices.channels) == {"id-team", "another"}

    async def test_there_are_only_so_many_channels(self, store: StoreWithNotices) -> None:
        for number in range(MOST_CHANNELS):
            await store.notices.insert_channel(a_channel(f"c{number}"))
        with pytest.raises(Exhausted, match="remove one"):
            await store.notices.insert_channel(a_channel())

    async def test_the_end_of_a_job_waits_for_each_channel_that_wants_it(
        self, store: StoreWithNotices
    ) -> None:
        hinted: list[str] = []
        store.notices.on_queued(hinted.append)
        await store.notices.insert_channel(a_channel())
        await store.notices.insert_channel(a_channel("all", project=""))
        await store.notices.insert_channel(a_channel("other", project="q"))
        await store.notices.insert_channel(a_channel("hangs", on=(NoticeKind.HUNG,)))
        await store.notices.insert_channel(a_channel("vision", labels={"team": "vision"}))
        job = await end(store)
        assert sorted(hinted) == ["id-all", "id-team"]
        waiting = await store.notices.first("id-team")
        assert waiting is not None
        assert (waiting.notice.job, waiting.notice.kind, waiting.tries) == (job, NoticeKind.ENDED, 0)
        assert waiting.due_at == waiting.notice.at == T0 + SECOND
        assert await store.notices.first("id-all") == waiting
        for other in ("id-other", "id-hangs", "id-vision", "id-nobody"):
            assert await store.notices.first(other) is None

    async def test_a_write_that_is_refused_queues_nothing(self, store: StoreWithNotices) -> None:
        hinted: list[str] = []
        store.notices.on_queued(hinted.append)
        await store.notices.insert_channel(a_channel())
        job = await store.insert(a_job(), [])
        await store.write(job, RUNNING)
        with pytest.raises(Conflict):
            await store.write(job, ended(), [an_event()])
        assert await store.notices.first("id-team") is None
        assert hinted == []

    async def test_a_write_that_needs_no_flush_still_queues_what_it_tells(
        self, store: StoreWithNotices
    ) -> None:
        await store.notices.insert_channel(a_channel())
        job = await store.insert(a_job(), [])
        hang = an_event("It seems to hang.", reason=Reason.HANG_SUSPECTED)
        job = await store.write(job, RUNNING, [hang], flush=False)
        assert job.version == 2
        assert await take(store) == [f"{job.id}-2-hung"]

    async def test_a_job_is_told_in_order_and_others_pass_a_notice_that_has_to_wait(
        self, store: StoreWithNotices
    ) -> None:
        await store.notices.insert_channel(a_channel())
        job = await store.insert(a_job(1), [])
        hang = an_event("It seems to hang.", reason=Reason.HANG_SUSPECTED)
        job = await store.write(job, replace(RUNNING, updated_at=T0), [hang])
        await store.write(job, replace(ended(), updated_at=T0 + SECOND), [an_event("over")])
        first = await store.notices.first("id-team")
        assert first is not None and first.notice.kind is NoticeKind.HUNG
        await store.notices.failed("id-team", first.notice.id, "400", T0, T0 + 60 * SECOND)
        later = await store.notices.first("id-team")
        assert later is not None
        assert (later.notice, later.tries, later.due_at) == (first.notice, 1, T0 + 60 * SECOND)
        other = await end(store, 5)
        assert await take(store) == [f"{other}-2-ended", f"{job.id}-2-hung", f"{job.id}-3-ended"]

    async def test_how_a_channel_fares_is_counted(self, store: StoreWithNotices) -> None:
        await store.notices.insert_channel(a_channel())
        for number in (1, 2, 3):
            await end(store, number)
        figures = (await store.notices.figures())["id-team"]
        assert (figures.waiting, figures.given_up, figures.last_success_at) == (3, 0, None)
        first = await store.notices.first("id-team")
        assert first is not None
        await store.notices.delivered("id-team", first.notice.id, T0)
        await store.notices.delivered("id-team", first.notice.id, T0)  # twice is no error
        second = await store.notices.first("id-team")
        assert second is not None
        gone = await store.notices.failed("id-team", second.notice.id, "no \N{SNOWMAN}", T0, T0)
        figures = (await store.notices.figures())["id-team"]
        assert (gone, figures.waiting, figures.last_success_at) == (0, 2, T0)
        assert (figures.last_error, figures.last_error_at) == ("no \N{SNOWMAN}", T0)

    async def test_what_nobody_takes_for_long_is_given_up_and_counted(self, store: StoreWithNotices) -> None:
        await store.notices.insert_channel(a_channel())
        for number in (1, 2, 3):
            await end(store, number)
        now = T0 + 2 * SECOND + GIVEN_UP_AFTER
        assert await store.notices.failed("id-team", "1001-2-ended", "gone", now, now) == 2
        assert await take(store) == ["1003-2-ended"]
        assert (await store.notices.figures())["id-team"].given_up == 2

    async def test_no_more_than_the_newest_wait(self, store: StoreWithNotices) -> None:
        await store.notices.insert_channel(a_channel())
        for number in range(MOST_WAITING + 2):
            await store.notices.queue(budget_notice(f"{number:05}", "p", "x", T0 + number * SECOND))
        first, figures = await store.notices.first("id-team"), (await store.notices.figures())["id-team"]
        assert first is not None and first.notice.id == "budget-00002"
        assert (figures.waiting, figures.given_up) == (MOST_WAITING, 2)

    async def test_the_same_warning_of_a_budget_waits_once(self, store: StoreWithNotices) -> None:
        await store.notices.queue(budget_notice("vision-80", "p", "nobody hears it", T0))
        await store.notices.insert_channel(a_channel())
        for _ in range(2):
            await store.notices.queue(budget_notice("vision-80", "p", "80% is spent", T0))
        await store.notices.queue(budget_notice("other", "q", "not of this project", T0))
        assert await take(store) == ["budget-vision-80"]

    async def test_a_notice_outlives_its_job(self, store: StoreWithNotices) -> None:
        await store.notices.insert_channel(a_channel())
        job = await store.get("-", "-", await end(store))
        await store.delete(job, a_deletion(job))
        assert await take(store) == [f"{job.id}-2-ended"]

    async def test_what_waits_for_a_deleted_channel_is_gone(self, store: StoreWithNotices) -> None:
        channel = a_channel()
        await store.notices.insert_channel(channel)
        await end(store)
        await store.notices.delete_channel(channel)
        with pytest.raises(NotFound, match="team"):
            await store.notices.delete_channel(channel)
        await end(store, 2)
        await store.notices.delivered(channel.id, "x", T0)
        assert await store.notices.failed(channel.id, "x", "e", T0, T0) == 0
        await store.notices.insert_channel(channel)
        assert await store.notices.first(channel.id) is None
        assert (await store.notices.figures())[channel.id].waiting == 0
