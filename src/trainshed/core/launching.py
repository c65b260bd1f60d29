"""From a job and one of its replicas to the Launch a backend is given. Pure."""

from trainshed.core.cluster_env import cluster_env
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
    return Launch(
        key=job.key(replica),
        image=pool.image,
        command=pool.command,
        args=pool.args,
        module=pool.module,
        packages=pool.packages,
        code=job.spec.code,
        working_directory=job.spec.working_directory,
        requirements=job.spec.requirements,
        env=cluster_env(job, replica),
        placement=place,
        room=shared_room(job.spec, admission, place),
        peers=tuple(place.host for place in admission.placements),
        grace=job.spec.scheduling.grace,
        held=bool(job.spec.scheduling.hold),
        watched=is_watched(job),
        nfs=pool.nfs,
        disk=pool.disk,
        scratch=pool.scratch,
        isolated=job.spec.isolated,
    )
