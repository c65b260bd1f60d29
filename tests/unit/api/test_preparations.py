"""Who is told of what is being prepared for jobs."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.builders import a_job
from trainshed.api.call import Call
from trainshed.api.queue import QueueHandlers
from trainshed.core.accounts.permission import OWNER, Principal, PrincipalKind
from trainshed.core.accounts.role import Role
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import PreparationKind, PreparationProgress
from trainshed.service.queue import QueueService

JOB = a_job(id="10")  # of the project shed


def somebody(project: str) -> Principal:
    rights = {project: Role.USER.rights(project)}
    return Principal(PrincipalKind.ACCOUNT, id="bob", rights=frozenset(), by_project=rights)


async def names(principal: Principal, ids: tuple[str, ...], jobs: tuple[Job, ...]) -> list[str]:
    """What is listed, where a package is prepared for jobs of which some still wait."""
    progress = PreparationProgress(kind=PreparationKind.RUNTIME, name="secret", message="", jobs=ids)
    service = cast("QueueService", SimpleNamespace(preparing=lambda: ((progress, jobs),)))
    call = Call(path={}, query={}, body={}, headers={}, base_url="", principal=principal)
    answer = cast("dict[str, list[Any]]", await QueueHandlers(service).preparations(call))
    return [item["name"] for item in answer["preparations"]]


@pytest.mark.parametrize("jobs", [(JOB,), ()], ids=["it waits", "it waits no longer"])
async def test_what_was_begun_for_jobs_of_others_is_not_listed(jobs: tuple[Job, ...]) -> None:
    assert await names(somebody("other"), (JOB.id,), jobs) == []
    assert await names(OWNER, (JOB.id,), jobs) == ["secret"]


async def test_what_is_prepared_for_no_job_or_for_ones_own_is_listed() -> None:
    assert await names(somebody("other"), (), ()) == ["secret"]
    assert await names(somebody(JOB.project), (JOB.id,), (JOB,)) == ["secret"]
