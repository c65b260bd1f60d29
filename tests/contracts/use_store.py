"""What every store promises about the sums by day."""

from dataclasses import replace
from datetime import date

import pytest

from tests.builders import a_pool
from tests.contracts.ledger_store import admitted, over, restarted, waiting_job
from tests.contracts.store_values import T0, a_deletion
from trainshed.core.day_use import DayUse, UseField, UseQuery
from trainshed.core.errors import Conflict
from trainshed.core.jobs.job import Job, JobSpec, JobState
from trainshed.core.ledger import TimeClass
from trainshed.core.ports import Store

DAY = T0.date()


async def lived(store: Store, **changes: object) -> Job:
    """A job of ten seconds: one queued, 9 with resources, of which 5 computed."""
    job = await store.insert(replace(waiting_job(), **changes), ())  # pyright: ignore[reportArgumentType]
    job = await store.write(job, admitted(job))
    job = await store.write(job, restarted(job, 6))
    return await store.write(job, over(job, 10))


def brief(uses: tuple[DayUse, ...], field: str = "job") -> dict[tuple[object, str], float]:
    assert len({use._replace(micros=0) for use in uses}) == len(uses), "a sum is told in two parts"
    return {(getattr(use, field), use.spent_on.value): use.micros / 1e6 for use in uses}


class UseStoreContract:
    """A subclass gives the fixture `store`."""

    async def test_a_life_is_summed_up_by_class_without_the_time_in_the_queue(self, store: Store) -> None:
        job = await lived(store)
        (use, *_) = uses = await store.uses(UseQuery(apart=frozenset(UseField)))
        assert brief(uses) == {(job.id, "SET_UP"): 2.5, (job.id, "COMPUTED"): 5, (job.id, "IDLE"): 1.5}
        assert job.status.admission is not None
        (place,) = job.status.admission.placements
        assert (use.day, use.project, use.node) == (DAY, job.project, place.node)
        assert (use.cpus, use.memory, use.gpus) == (place.cpus, place.memory, len(place.gpus))

    async def test_what_is_not_kept_apart_is_added_up(self, store: Store) -> None:
        await lived(store)
        await lived(store, id="2", project="q")
        assert brief(await store.uses(UseQuery()))["", "COMPUTED"] == 10
        by_project = brief(await store.uses(UseQuery(apart=frozenset({UseField.PROJECT}))), "project")
        assert (by_project["p", "COMPUTED"], by_project["q", "COMPUTED"]) == (5, 5)

    async def test_a_question_is_about_days_a_project_a_location_or_a_job(self, store: Store) -> None:
        job = await lived(store)
        other = await lived(store, id="2", project="q", location="europe-west4")
        for query, seconds in (
            (UseQuery(project="q"), 5),
            (UseQuery(location=job.location), 5),
            (UseQuery(job=other.id), 5),
            (UseQuery(since=DAY, until=date(9999, 1, 1)), 10),
            (UseQuery(until=DAY), 0),
            (UseQuery(since=date(9999, 1, 1)), 0),
            (UseQuery(project="nobody"), 0),
        ):
            assert brief(await store.uses(query)).get(("", "COMPUTED"), 0) == seconds, query

    async def test_sums_by_label_outlive_the_jobs_that_had_it(self, store: Store) -> None:
        await lived(store, labels={"team": "vi'si\"on", "a": "b"})
        gone = await lived(store, id="2", labels={"team": "speech"})
        await lived(store, id="3")
        await store.delete(gone, a_deletion(gone))
        query = UseQuery(apart=frozenset({UseField.LABEL}), label="team")
        by_label = {
            label: seconds
            for (label, kind), seconds in _summed(await store.uses(query)).items()
            if kind == "COMPUTED"
        }
        assert by_label == {"vi'si\"on": 5, "speech": 5, "": 5}
        assert await store.display_names(["2", "3", "4"]) == {
            "2": gone.display_name,
            "3": gone.display_name,
        }

    async def test_sums_by_user_outlive_the_jobs_that_they_submitted(self, store: Store) -> None:
        await lived(store, submitter="ann")
        gone = await lived(store, id="2", submitter="bob")
        await lived(store, id="3")
        await store.delete(gone, a_deletion(gone))
        uses = await store.uses(UseQuery(apart=frozenset({UseField.USER})))
        assert {use.user: use.micros for use in uses if use.spent_on is TimeClass.COMPUTED} == {
            **{"ann": 5_000_000, "bob": 5_000_000, "": 5_000_000}
        }

    async def test_sums_of_very_many_jobs_are_those_that_are_told_one_by_one(self, store: Store) -> None:
        await lived(store)
        await lived(store, id="2", project="q")
        for more in (set[UseField](), {UseField.DAY}, {UseField.NODE, UseField.DAY}):
            for job in ("", "2"):
                query = UseQuery(apart=frozenset({UseField.JOB, UseField.PROJECT} | more), job=job)
                told = await store.job_uses(query)
                uses = [told.kinds[at]._replace(job=job, micros=micros) for at, job, micros in told.rows]
                assert sorted(uses) == sorted(await store.uses(query))

    async def test_of_an_id_that_is_deleted_twice_the_last_labels_count(self, store: Store) -> None:
        for number, team in enumerate(("vision", "speech")):
            job = await lived(store, labels={"team": team}) if not number else await again(store, team)
            await store.delete(job, replace(a_deletion(job), name=f"{a_deletion(job).name}{number}"))
        query = UseQuery(apart=frozenset({UseField.LABEL}), label="team")
        assert {use.label for use in await store.uses(query)} == {"speech"}

    async def test_a_write_that_lost_adds_nothing(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        placed = await store.write(job, admitted(job))
        asked = await store.write(placed, replace(placed.status, updated_at=placed.status.admitted_at))
        with pytest.raises(Conflict):
            await store.write(placed, over(placed, 4))
        await store.write(asked, over(asked, 4))
        assert brief(await store.uses(UseQuery())) == {("", "SET_UP"): 1, ("", "COMPUTED"): 2}

    async def test_a_gang_of_a_thousand_is_a_few_sums(self, store: Store) -> None:
        job = await store.insert(replace(waiting_job(), spec=JobSpec(pools=(a_pool(1000),))), ())
        job = await store.write(job, admitted(job))
        await store.write(job, replace(over_all(job), updated_at=over_all(job).ended_at))
        assert brief(await store.uses(UseQuery())) == {("", "SET_UP"): 9000}


async def again(store: Store, team: str) -> Job:
    """A job of the same id that ends in the queue: intervals of an id are told once."""
    job = await store.insert(replace(waiting_job(), labels={"team": team}), ())
    return await store.write(job, replace(job.status, state=JobState.CANCELLED, updated_at=T0, ended_at=T0))


def over_all(job: Job):
    single = replace(job, status=replace(job.status, replicas=job.status.replicas[:1]))
    return replace(over(single, 10), replicas=job.status.replicas)


def _summed(uses: tuple[DayUse, ...]) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for use in uses:
        key = use.label, use.spent_on.value
        sums[key] = sums.get(key, 0) + use.micros / 1e6
    return sums
