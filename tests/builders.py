"""Values for tests, ready made: name only what the test is about, everything else is ordinary."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainshed.core.jobs.job import (
    Closing,
    Failure,
    Job,
    JobSpec,
    JobState,
    Outcome,
    Pool,
    RestartRule,
    Scheduling,
    Status,
    planned_replicas,
)
from trainshed.core.jobs.replica import Exit, Observation, Phase, Replica, Sight
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Admission, Node, Placement
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.snapshot import Reservation

T0 = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
PORTS = 2222


def at(seconds: float) -> datetime:
    """So many seconds after the time at which every test job is made."""
    return T0 + timedelta(seconds=seconds)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def a_pool(
    replicas: int = 1, *, cpus: float = 1, memory: int = GIB, gpus: int = 0, reducer: bool = False
) -> Pool:
    return Pool(
        machine_type="n1-standard-4",
        cpus=cpus,
        memory=memory,
        accelerator="NVIDIA_TESLA_T4" if gpus else "",
        accelerators=gpus,
        replicas=replicas,
        image="trainshed/python:3",
        command=("python", "-c", "pass"),
        is_reducer=reducer,
    )


EMPTY = Pool()


def a_rule(
    *,
    codes: tuple[tuple[int, int], ...] = ((129, 255),),
    restarts: int = 5,
    retries: int = 3,
    whole_gang: bool = False,
    disabled: bool = False,
    backoff: float = 0.5,
) -> RestartRule:
    return RestartRule(
        backoff=timedelta(seconds=backoff),
        retry_codes=codes,
        replica_restarts=restarts,
        job_retries=retries,
        whole_gang=whole_gang,
        disabled=disabled,
    )


def a_job(
    *pools: Pool,
    id: str = "1",
    created_at: datetime = T0,
    scheduling: Scheduling | None = None,
    rule: RestartRule | None = None,
    output: str = "",
    status: Status | None = None,
) -> Job:
    """A waiting job of one replica, unless pools are given."""
    scheduling = scheduling or Scheduling()
    if rule is not None:
        scheduling = replace(scheduling, restart=rule)
    return Job(
        id=id,
        project="shed",
        location="here",
        display_name=f"job-{id}",
        spec=JobSpec(pools=pools or (a_pool(),), scheduling=scheduling, output=output),
        created_at=created_at,
        status=status or Status(),
        version=1,
    )


def a_placement(pool: int, index: int, **fields: object) -> Placement:
    given: dict[str, object] = {"node": "n", "host": "10.0.0.1", "cpus": 1, "memory": GIB} | fields
    return Placement(pool=pool, index=index, **given)  # type: ignore[arg-type]


def an_admission(job: Job, node: str = "n") -> Admission:
    """Every replica on one node, on ports 2222 and up; the master listens on 2300."""
    places = tuple(
        a_placement(r.pool, r.index, node=node, port=PORTS + n)
        for n, r in enumerate(planned_replicas(job.spec))
    )
    return Admission(placements=places, admitted_at=T0, master_port=2300)


def admitted(job: Job, *, attempt: int = 0) -> Job:
    """PENDING: a place for everyone, nothing started."""
    status = replace(
        job.status,
        state=JobState.PENDING,
        attempt=attempt,
        admission=an_admission(job),
        admitted_at=T0,
        replicas=planned_replicas(job.spec),
    )
    return replace(job, status=status)


def running(job: Job, *, attempt: int = 0, run: int = 0) -> Job:
    """RUNNING since T0, every replica of it."""
    job = admitted(job, attempt=attempt)
    replicas = tuple(
        replace(r, phase=Phase.RUNNING, run=run, started_at=T0) for r in planned_replicas(job.spec)
    )
    return replace(job, status=replace(job.status, state=JobState.RUNNING, started_at=T0, replicas=replicas))


def closing(job: Job, outcome: Outcome, *, since: datetime = T0, failure: Failure | None = None) -> Job:
    closing = Closing(outcome=outcome, since=since, failure=failure)
    return replace(job, status=replace(job.status, closing=closing))


def cancelled(job: Job, when: datetime = T0) -> Job:
    """As the service leaves a job for which a cancel was asked."""
    return replace(job, status=replace(job.status, state=JobState.CANCELLING, cancel_asked_at=when))


def with_status(job: Job, status: Status) -> Job:
    return replace(job, status=status, version=job.version + 1)


def with_replica(job: Job, replica: Replica) -> Job:
    """The job with this replica in place of the one at its pool and index."""
    mine = (replica.pool, replica.index)
    replicas = tuple(replica if (r.pool, r.index) == mine else r for r in job.status.replicas)
    return replace(job, status=replace(job.status, replicas=replicas))


def key(job: Job, pool: int = 0, index: int = 0, *, run: int = 0, attempt: int | None = None) -> RunKey:
    number = job.status.attempt if attempt is None else attempt
    return RunKey(ReplicaName(job.id, number, pool, index), run)


def alive(key: RunKey, started_at: datetime = T0) -> Observation:
    return Observation(key=key, sight=Sight.RUNNING, started_at=started_at)


def ended(key: RunKey, end: Exit | int = 0, ended_at: datetime = T0) -> Observation:
    end = Exit(code=end) if isinstance(end, int) else end
    sight = Sight.LOST if end.lost else Sight.ENDED
    return Observation(key=key, sight=sight, exit=None if end.lost else end, started_at=T0, ended_at=ended_at)


LOST = Exit()
KILLED = Exit(signal=9)


def all_alive(job: Job, but: Mapping[tuple[int, int], Exit | int | None] | None = None) -> list[Observation]:
    """Every replica's current run as it should be, but some ended so (None: not shown at all)."""
    but = but or {}
    seen: list[Observation] = []
    for replica in job.status.replicas:
        place = (replica.pool, replica.index)
        if place not in but:
            seen.append(alive(job.key(replica)))
        elif (end := but[place]) is not None:
            seen.append(ended(job.key(replica), end))
    return seen


def a_node(name: str = "n", *, cpus: float = 8, memory: int = 32 * GIB, gpus: Sequence[str] = ()) -> Node:
    return Node(name=name, host="10.0.0.1", cpus=cpus, memory=memory, gpus=tuple(gpus), gpu_kind="T4")


def a_holder(
    job: str = "h", *, cpus: float = 1, until: datetime = T0, node: str = "n", gpus: Sequence[str] = ()
) -> Reservation:
    place = a_placement(0, 0, node=node, cpus=cpus, gpus=tuple(gpus))
    return Reservation(job=job, display_name=f"job-{job}", placements=(place,), until=until)
