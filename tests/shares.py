"""Shares for tests, ready made: name only what the test is about."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from tests.builders import T0, a_job, a_pool, admitted, seconds
from trainshed.core.jobs.job import Job, Scheduling
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Admission
from trainshed.core.queue.preempt import ClaimChoice, Preemption
from trainshed.core.queue.share import Share, ShareTree, share_tree

NOTHING: Mapping[str, timedelta] = MappingProxyType({})


def a_share(
    name: str,
    cpus: float,
    *,
    parent: str = "root",
    borrow: float | None = None,
    lend: float | None = None,
    per_user: float | None = None,
    weight: float = 1,
) -> Share:
    """A share of CPUs, for the project of its own name."""
    return Share(
        name=name,
        parent=parent,
        projects=(name,),
        nominal={"cpus": cpus},
        borrow={} if borrow is None else {"cpus": borrow},
        lend={} if lend is None else {"cpus": lend},
        per_user={} if per_user is None else {"cpus": per_user},
        weight=weight,
    )


def a_tree(*shares: Share) -> ShareTree:
    return share_tree(shares)


def a_job_of(
    project: str,
    id: str,
    cpus: float = 1,
    *,
    created_at: datetime = T0,
    priority: int = 0,
    timeout: float = 3600,
    spot: bool = False,
    user: str = "",
) -> Job:
    job = a_job(
        a_pool(cpus=cpus),
        id=id,
        created_at=created_at,
        scheduling=Scheduling(priority=priority, timeout=seconds(timeout), strategy="SPOT" if spot else ""),
    )
    return replace(job, project=project, submitter=user)


def claims_of(cycle: Cycle, lost: Mapping[str, timedelta] = NOTHING) -> tuple[Preemption, ...]:
    choice = ClaimChoice.of(cycle)
    assert choice is not None
    return choice.claims(lost)


def started(job: Job) -> Job:
    """Running with what it asks for."""
    job = admitted(job)
    assert job.status.admission is not None
    [place] = job.status.admission.placements
    place = replace(place, cpus=job.spec.pools[0].cpus)
    return replace(job, status=replace(job.status, admission=Admission(placements=(place,), admitted_at=T0)))
