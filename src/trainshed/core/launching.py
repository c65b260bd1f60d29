"""From a job and one of its replicas to the Launch a backend is given. Pure."""

from trainshed.core.cluster_env import cluster_env, late_values
from trainshed.core.fleet import Admission
from trainshed.core.job import Job
from trainshed.core.launch import Launch
from trainshed.core.limits import shared_room
from trainshed.core.replica import Replica
from trainshed.core.suspicion import is_watched


def launch_of(job: Job, replica: Replica) -> Launch:
    admission = job.status.admission
    if admission is None:
        raise LookupError(f"job {job.id} is not admitted")
    pool = job.spec.pools[replica.pool]
    place = admission.by_replica()[replica.pool, replica.index]
    env = cluster_env(job, replica)
    late = late_values(job, replica, env)
    return Launch(
        key=job.key(replica),
        image=pool.image,
        command=pool.command if late is None else late.fill_all(pool.command),
        args=pool.args if late is None else late.fill_all(pool.args),
        module=pool.module,
        packages=pool.packages,
        code=job.spec.code,
        working_directory=job.spec.working_directory,
        requirements=job.spec.requirements,
        env=env,
        placement=place,
        room=shared_room(job.spec, admission, place),
        peers=tuple(place.host for place in admission.placements),
        names=_names(job, admission),
        grace=job.spec.scheduling.grace,
        held=bool(job.spec.scheduling.hold),
        watched=is_watched(job),
        nfs=pool.nfs,
        disk=pool.disk,
        scratch=pool.scratch,
        isolated=job.spec.isolated,
    )


def _names(job: Job, admission: Admission) -> tuple[tuple[str, ...], ...]:
    """The further names of each replica; empty where none has any."""
    pools = () if job.origin is None else job.origin.pools
    if not any(words.hosts for words in pools):
        return ()
    return tuple(pools[place.pool].names(place.index) for place in admission.placements)
