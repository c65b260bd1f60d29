"""PersistentResourceService over a store in a file: who keeps a resource from being deleted."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.builders import T0, a_job, a_node, a_pool
from tests.studies.study_builders import a_study
from trainshed.core.errors import Conflict
from trainshed.core.jobs.job import Job, JobSpec, Owner, OwnerKind
from trainshed.core.queue.persistent_resource import PersistentResource
from trainshed.core.tuning.study import Study, StudyState
from trainshed.service.persistent_resources import PersistentResourceService
from trainshed.service.reserved_shares import ReservedShares
from trainshed.store import SqlStore
from trainshed.testing.backend import FakeBackend, FakeMachine

PLACE = ("shed", "here")


class StillClock:
    def now(self) -> datetime:
        return T0


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[PersistentResourceService]:
    """Of eight CPUs, with a resource that has four."""
    store = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
    await store.start()
    made = PersistentResourceService(
        store=store,
        jobs=store,
        studies=store.studies,
        shares=ReservedShares(lambda: None),
        backend=FakeBackend(FakeMachine(nodes=(a_node(cpus=8),))),
        clock=StillClock(),
        hint=lambda: None,
    )
    pools = (a_pool(cpus=4),)
    kept = PersistentResource(id="kept", project=PLACE[0], location=PLACE[1], pools=pools, created_at=T0)
    await made.create(kept, "v1")
    yield made
    await store.close()


INSIDE = JobSpec(pools=(a_pool(),), persistent_resource="kept")


def a_job_inside(id: str, study: str = "") -> Job:
    owner = Owner(OwnerKind.STUDY, study) if study else None
    return replace(a_job(id=id), project=PLACE[0], location=PLACE[1], spec=INSIDE, owner=owner)


def a_study_inside() -> Study:
    return replace(a_study(), template=INSIDE)


def ended(study: Study) -> Study:
    return replace(study, status=replace(study.status, state=StudyState.SUCCEEDED, ended_at=T0))


async def test_a_resource_is_not_deleted_while_a_study_will_submit_trials_to_it(
    service: PersistentResourceService,
) -> None:
    study = await service.studies.insert_study(a_study_inside())
    await service.jobs.insert(a_job_inside("10", study="7"), ())
    with pytest.raises(Conflict, match=r"has studies that are not over: study 7 \(study\)\. Cancel them"):
        await service.delete(*PLACE, "kept")
    await service.jobs.insert(a_job_inside("11"), ())
    with pytest.raises(Conflict, match=r"has studies and jobs that are not over: study 7 \(study\), 11"):
        await service.delete(*PLACE, "kept")
    assert service.shares.resources
    await service.studies.write_study(ended(study))
    with pytest.raises(Conflict, match=r"has jobs that are not over: 10 .*, 11"):
        await service.delete(*PLACE, "kept")


async def test_studies_of_other_places_and_those_that_are_over_do_not_keep_it(
    service: PersistentResourceService,
) -> None:
    elsewhere = replace(a_study_inside(), id="8", project="other")
    for study in (elsewhere, ended(a_study_inside()), replace(a_study(), id="9")):
        await service.studies.insert_study(study)
    await service.delete(*PLACE, "kept")
    assert not service.shares.resources
