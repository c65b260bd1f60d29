"""From a job and one of its replicas to the Launch a backend is given. Pure."""

from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.launch import QUEUE_LABEL, Launch, RemoteRole
from trainshed.core.jobs.limits import shared_room
from trainshed.core.jobs.pool_words import HOST, PoolWords
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.suspicion import is_watched
from trainshed.core.names import task_name
from trainshed.core.queue.fleet import Admission, Placement


class Launches:
    """Of the replicas of one admitted job. Made once for all that start together."""

    def __init__(self, job: Job) -> None:
        self._job, self._cluster = job, JobCluster(job)
        admission = self._cluster.admission
        self._peers = tuple(place.host for place in admission.placements)
        self._names = _names(job, admission)

    def of(self, replica: Replica) -> Launch:
        job, admission = self._job, self._cluster.admission
        pool = job.spec.pools[replica.pool]
        place = self._cluster.places[replica.pool, replica.index]
        env = self._cluster.env(replica)
        late = self._cluster.late_values(replica, env)
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
            accelerator=pool.accelerator if pool.accelerators else "",
            room=shared_room(job.spec, admission, place),
            peers=self._peers,
            names=self._names,
            remote=_remote(job, admission, replica),
            grace=job.spec.scheduling.grace,
            held=bool(job.spec.scheduling.hold),
            watched=is_watched(job),
            nfs=pool.nfs,
            disk=pool.disk,
            scratch=pool.scratch,
            isolated=job.spec.isolated,
            queue=job.labels.get(QUEUE_LABEL, ""),
        )


def _names(job: Job, admission: Admission) -> tuple[tuple[str, ...], ...]:
    """The further names of each replica; empty where none has any."""
    pools = () if job.origin is None else job.origin.pools
    if not any(words.hosts for words in pools):
        return ()
    return tuple(pools[place.pool].names(place.index) for place in admission.placements)


def _remote(job: Job, admission: Admission, replica: Replica) -> RemoteRole | None:
    pools = () if job.origin is None else job.origin.pools
    own = pools[replica.pool].remote if pools else None
    if own is None:
        return None
    places = [(place, pools[place.pool]) for place in admission.placements]
    return RemoteRole(
        serves=own.serves,
        servers=" ".join(
            _server(place, words) for place, words in places if words.remote and words.remote.serves
        ),
        rows="".join(_row(place, words) for place, words in places),
        list_place=own.list_place,
    )


def _server(place: Placement, words: PoolWords) -> str:
    names = (task_name(place.pool, place.index), *words.names(place.index)[:1])
    return f"{','.join(names)}={place.address}"


def _row(place: Placement, words: PoolWords) -> str:
    """Replicas that serve are listed by their tasks: several of them may have one address."""
    if words.remote is None or not words.remote.row:
        return ""
    host = task_name(place.pool, place.index) if words.remote.serves else place.host
    return f"{words.remote.row.replace(HOST, host)}\n"
