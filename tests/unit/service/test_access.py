"""What a job's programs may do, until when, and what a look costs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from tests.builders import T0, a_job
from trainshed.core.accounts.permission import principal_of_job
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Forbidden, NotFound
from trainshed.core.google import GoogleAccess
from trainshed.core.jobs.access import GRACE, HIDDEN
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.jobs.remote_start import SECRET, remote_secret
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Operation
from trainshed.core.queue.fleet import Placement
from trainshed.service import access
from trainshed.service.access import NO_GRANTS, AccessService, AnswerCache, BucketGrants
from trainshed.testing.bucket import MemoryBuckets
from trainshed.testing.store import MemoryStore


class PlainTokens:
    def issue(self, job: str) -> str:
        return f"job.{job}"

    def read(self, token: str) -> str | None:
        return token.removeprefix("job.") if token != "job.forged" else None


@dataclass
class Clock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time

    def go(self, passed: timedelta) -> None:
        self.time += passed


class CountedStore(MemoryStore):
    looks = 0

    async def load(self, job: str) -> Job | None:
        self.looks += 1
        return await super().load(job)


HERE = "http://127.0.0.1:99"


@dataclass
class Bench:
    clock: Clock = field(default_factory=Clock)
    store: CountedStore = field(default_factory=CountedStore)

    def __post_init__(self) -> None:
        self.buckets = MemoryBuckets(self.clock)
        self.access = self.serving()

    def serving(self, address: str = "", grants: BucketGrants = NO_GRANTS) -> AccessService:
        return AccessService(
            PlainTokens(), self.store, self.buckets, self.clock, address=address, grants=grants
        )

    async def job(self, identity: str = "1", project: str = "p1") -> Job:
        return await self.store.insert(replace(a_job(), id=identity, project=project), ())

    async def end(self, job: Job) -> Job:
        status = replace(job.status, state=JobState.SUCCEEDED, ended_at=self.clock.now())
        return await self.store.write(job, status)

    async def bucket(self, name: str, project: str) -> None:
        info = BucketInfo(name=name, project=project, location="US", created_at=T0, updated_at=T0)
        await self.buckets.create(info)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def refused(asked: Callable[[], Awaitable[Any]]) -> str:
    with pytest.raises(Forbidden) as error:
        await asked()
    return error.value.message


async def test_the_token_of_a_job_says_which_job_asks_and_of_which_project(bench: Bench) -> None:
    await bench.job()
    assert await bench.access.principal("job.1") == principal_of_job("1", "p1")
    with pytest.raises(NotFound):
        await bench.access.look("missing")


async def test_the_right_ends_a_minute_after_the_job(bench: Bench) -> None:
    job = await bench.job()
    await bench.access.principal("job.1")
    bench.clock.go(timedelta(days=3))
    await bench.access.principal("job.1")
    await bench.end(job)
    bench.clock.go(GRACE)
    await bench.access.principal("job.1")
    bench.clock.go(timedelta(seconds=1))
    assert await refused(lambda: bench.access.principal("job.1")) == (
        "Job 1 is over, and so is its right to buckets."
    )


async def test_what_was_remembered_of_a_running_job_does_not_outlive_its_grace_by_much(bench: Bench) -> None:
    job = await bench.job()
    await bench.end(job)
    bench.clock.go(GRACE - timedelta(seconds=1))
    await bench.access.principal("job.1")
    bench.clock.go(timedelta(seconds=2))
    await refused(lambda: bench.access.principal("job.1"))


async def test_a_forged_token_costs_no_look(bench: Bench) -> None:
    assert "not issued by this server" in await refused(lambda: bench.access.principal("job.forged"))
    assert bench.store.looks == 0


async def test_a_deleted_job_has_no_right(bench: Bench) -> None:
    job = await bench.end(await bench.job())
    await bench.access.principal("job.1")
    await bench.store.delete(job, Operation(name="o", kind="delete", target=job.name, created_at=T0))
    bench.clock.go(access.REMEMBERED)
    assert "was deleted" in await refused(lambda: bench.access.principal("job.1"))


async def test_many_requests_cost_one_look(bench: Bench) -> None:
    await bench.job()
    for _ in range(1000):
        await bench.access.principal("job.1")
    assert bench.store.looks == 1
    bench.clock.go(access.REMEMBERED)
    await bench.access.principal("job.1")
    assert bench.store.looks == 2


async def test_memory_is_bounded_and_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST", 3)
    asked: list[str] = []

    async def ask(key: str) -> str:
        asked.append(key)
        return key

    memory = AnswerCache(Clock(), ask)
    for key in ("a", "b", "c", "d", "b", "a"):
        assert await memory.get(key) == key
    assert asked == ["a", "b", "c", "d", "a"]


async def test_what_could_not_be_looked_up_is_asked_again() -> None:
    answers: list[Any] = [NotFound("not yet"), "there"]

    async def ask(key: str) -> str:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return cast("str", found)

    memory = AnswerCache(Clock(), ask)
    with pytest.raises(NotFound):
        await memory.get("x")
    assert await memory.get("x") == "there"


def a_launch(**env: str) -> Launch:
    place = Placement(pool=0, index=0, node="n", host="127.0.0.1", port=1, cpus=1, memory=1)
    key = RunKey(ReplicaName("1", 0, 0, 0), 0)
    return Launch(key=key, image="i", command=(), args=(), env=env, placement=place)


async def test_a_launch_gets_the_secret_of_its_job_where_replicas_start_programs_in_others(bench: Bench):
    role = RemoteRole(serves=True, servers="", rows="", list_place="/etc/list")
    launch = bench.access.equip(await bench.job(), replace(a_launch(), remote=role))
    assert launch.env == {SECRET: remote_secret("job.1")}
    assert launch.secrets == {SECRET}


async def test_a_launch_gets_what_goes_with_googles_names_unless_its_job_means_google(bench: Bench) -> None:
    job = await bench.job()
    access = bench.serving(HERE)
    assert access.equip(job, a_launch()).google == GoogleAccess(HERE, "job.1")
    means_google = a_launch(STORAGE_EMULATOR_HOST="https://storage.googleapis.com")
    assert access.equip(job, means_google).google is None


async def test_a_launch_gets_the_way_to_the_buckets_and_the_jobs_own_variables_win(bench: Bench) -> None:
    job = await bench.job()
    assert bench.access.equip(job, a_launch(A="1")) == a_launch(A="1")  # nobody knows where we are
    env = bench.serving(HERE).equip(job, a_launch(A="1", FSSPEC_GCS_TOKEN="mine")).env
    assert env["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:99/t/job.1"
    assert (env["A"], env["FSSPEC_GCS_TOKEN"]) == ("1", "mine")


async def test_people_are_told_the_same_variables_as_the_programs_of_a_job(bench: Bench) -> None:
    grants = BucketGrants(
        granted=lambda project: {"FSSPEC_GCS_TOKEN": "a secret", "B": project},
        shown=lambda project: {"FSSPEC_GCS_TOKEN": HIDDEN, "B": project},
    )
    access = bench.serving(HERE, grants=grants)
    given, told = access.equip(await bench.job(), a_launch()).env, access.told("p1")
    assert told.keys() == given.keys()
    assert {name: given[name] for name, value in told.items() if value != HIDDEN} == {
        name: value for name, value in told.items() if value != HIDDEN
    }
    assert (told["FSSPEC_GCS_TOKEN"], told["B"], told["STORAGE_EMULATOR_HOST"]) == (HIDDEN, "p1", HIDDEN)


async def test_what_the_settings_grant_wins_over_what_every_job_is_told(bench: Bench) -> None:
    job = await bench.job()
    grants = BucketGrants(
        granted=lambda project: {"GOOGLE_SERVICE_ACCOUNT_KEY": f"key of {project}", "B": "2"}
    )
    env = bench.serving(HERE, grants=grants).equip(job, a_launch(B="3")).env
    assert (env["GOOGLE_SERVICE_ACCOUNT_KEY"], env["B"]) == ("key of p1", "3")
    assert env["STORAGE_EMULATOR_HOST"].startswith("http://127.0.0.1:99/t/")
