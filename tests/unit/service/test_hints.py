"""Hints that jobs have changed: the newest of each job, never a queue without end, a gap told as such."""

from dataclasses import replace

from tests.builders import a_job
from trainshed.core.jobs.job import Job
from trainshed.service.hints import MOST_WAITING, REMEMBERED, JobHints


def job(identity: str, version: int = 1, project: str = "p", location: str = "l") -> Job:
    return replace(a_job(), id=identity, project=project, location=location, version=version)


async def test_a_listener_that_does_not_read_gets_the_newest_version_of_each_job() -> None:
    hints = JobHints()
    with hints.listen("p", "l") as listener:
        assert (await listener.next()).is_everything
        for version in range(1, 9):
            hints.tell(job("1", version), False)
            hints.tell(job("2", version), False)
        hints.tell(job("2", 9), True)
        news = await listener.next()
    assert [(hint.job, hint.version, hint.is_deleted) for hint in news.hints] == [
        ("1", 8, False),
        ("2", 9, True),
    ]
    assert not news.is_everything
    assert hints.listeners == set()


async def test_too_many_jobs_are_told_as_everything() -> None:
    hints = JobHints()
    with hints.listen("p", "l") as listener:
        await listener.next()
        for number in range(MOST_WAITING + 5):
            hints.tell(job(str(number)), False)
        news = await listener.next()
    assert news.is_everything
    assert len(news.hints) <= MOST_WAITING


async def test_only_what_was_asked_for_is_told() -> None:
    hints = JobHints()
    with hints.listen("p", "l", "7") as one, hints.listen("p", "-") as everywhere:
        await one.next()
        await everywhere.next()
        for other in (job("8"), job("7", project="q"), job("7", location="m"), job("7", 3)):
            hints.tell(other, False)
        assert [hint.version for hint in (await one.next()).hints] == [3]
        assert [hint.job for hint in (await everywhere.next()).hints] == ["8", "7"]


async def test_who_comes_back_goes_on_behind_the_last_hint_or_is_told_to_look_at_everything() -> None:
    hints = JobHints()
    with hints.listen("p", "l") as listener:
        last = (await listener.next()).id
    hints.tell(job("1", 2), False)
    with hints.listen("p", "l", after=last) as listener:
        news = await listener.next()
        assert not news.is_everything
        assert [(hint.job, hint.version) for hint in news.hints] == [("1", 2)]
    for number in range(REMEMBERED + 1):
        hints.tell(job("1", number), False)
    for after in (last, "other.1", "nonsense", f"{last.partition('.')[0]}.999999"):
        with hints.listen("p", "l", after=after) as listener:
            assert (await listener.next()).is_everything


async def test_growth_is_told_once_however_often_before_it_is_read() -> None:
    hints = JobHints()
    with hints.listen("p", "l") as listener:
        await listener.next()
        for _ in range(3):
            listener.tell_growth("projects/p/locations/l/customJobs/1", "log")
        news = await listener.next()
    assert news.grown == (("projects/p/locations/l/customJobs/1", "log"),)
    assert news.hints == ()


async def test_new_samples_are_told_to_those_who_asked_for_them_once_however_many_came() -> None:
    hints = JobHints()
    name = "projects/p/locations/l/customJobs/7"
    with hints.listen("p", "l", measured=name) as graphs, hints.listen("p", "l") as others:
        await graphs.next()
        await others.next()
        hints.tell_measured({"6", "7"})
        hints.tell_measured({"7"})
        assert (await graphs.next()).grown == ((name, "metrics"),)
        hints.tell_measured({"6"})
        hints.tell(job("7", 3), False)
        for listener in (graphs, others):
            news = await listener.next()
            assert (news.grown, [hint.version for hint in news.hints]) == ((), [3])
