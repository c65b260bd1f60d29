"""Access of a job's programs: which variables they get, and whether a job's token is still valid.

`control/jobs.py` calls `equip` for each launch. The API's request gate calls `principal` and `look` for each
request. A token is valid while its job lasts and one minute longer. `core/accounts/permission.py` decides
what it allows.

Answers from the store and from buckets are used again for five seconds, so that a program which sends
thousands of objects does not cost thousands of queries. This module never writes, and never says who else has
a bucket.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from trainshed.core.accounts.permission import Principal, principal_of_job
from trainshed.core.bucket import BucketInfo
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Forbidden
from trainshed.core.google import GoogleAccess, wants_google
from trainshed.core.jobs.access import MARK, JobTokens, bucket_env, lasts_until, told_env
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.remote_start import with_remote_secret
from trainshed.core.ports import Clock, Store

REMEMBERED = timedelta(seconds=5)
MOST = 1000  # cached jobs, and as many cached buckets

_T = TypeVar("_T")


@dataclass(slots=True)
class AnswerCache(Generic[_T]):
    """Caches the answers of `ask` for REMEMBERED; drops the oldest beyond MOST."""

    clock: Clock
    ask: Callable[[str], Awaitable[_T]]
    _known: dict[str, tuple[datetime, _T]] = field(default_factory=dict[str, tuple[datetime, _T]])

    async def get(self, key: str) -> _T:
        now, known = self.clock.now(), self._known.get(key)
        if known is not None and now < known[0] + REMEMBERED:
            return known[1]
        result = await self.ask(key)
        self._known.pop(key, None)
        self._known[key] = (now, result)
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return result


@dataclass(frozen=True, slots=True)
class JobStanding:
    """The project of a job, and when its right to buckets ends; None while the job is not over."""

    project: str
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketGrants:
    """What the settings tell jobs of buckets kept elsewhere."""

    granted: Callable[[str], Mapping[str, str]] = lambda _: {}  # variables for the jobs of a project
    shown: Callable[[str], Mapping[str, str]] = lambda _: {}  # ... without what is secret in them
    ports: frozenset[int] = frozenset()  # of this machine's loopback, that are among them


NO_GRANTS = BucketGrants()


class AccessService:
    def __init__(
        self,
        tokens: JobTokens,
        store: Store,
        buckets: Buckets,
        clock: Clock,
        *,
        address: str = "",
        grants: BucketGrants = NO_GRANTS,
    ) -> None:
        """`address` is where jobs reach this server; without it they are told nothing of its buckets."""
        self._address, self._grants = address, grants
        self._tokens = tokens
        self._clock = clock
        self._store = store
        self._jobs = AnswerCache(clock, self._standing)
        self._buckets = AnswerCache(clock, buckets.get)

    def equip(self, job: Job, launch: Launch) -> Launch:
        """Add the variables by which the program finds the buckets, and other replicas of its job trust it.

        The job's own variables win, then those of the settings.
        """
        if launch.remote is not None:
            launch = with_remote_secret(launch, self._tokens.issue(job.id))
        env, google = self._grants.granted(job.project), None
        if self._address:
            token = self._tokens.issue(job.id)
            env = {**bucket_env(self._address, token, job.project), **env}
            if not wants_google(launch.env):
                google = GoogleAccess(self._address, token)
        return replace(launch, env={**env, **launch.env}, google=google) if env else launch

    def told(self, project: str) -> Mapping[str, str]:
        """The same variables for people to read, those of a job's own excepted."""
        return {**told_env(project), **self._grants.shown(project)}

    def token_of(self, job: str) -> str:
        return self._tokens.issue(job)

    def is_of_a_job(self, token: str) -> bool:
        return token.startswith(MARK)

    def was_issued(self, token: str) -> bool:
        """Whether it is the token of a job of this server. Whether it counts still is not asked."""
        return self._tokens.read(token) is not None

    async def principal(self, token: str) -> Principal:
        """The job that the token was issued to. Raises Forbidden where the token is not valid (any more)."""
        job_id = self._tokens.read(token)  # checked before any query, so that forged tokens cost nothing
        if job_id is None:
            raise Forbidden("The token in the address was not issued by this server; it may be cut off.")
        standing = await self._jobs.get(job_id)
        if standing is None:
            raise Forbidden(f"Job {job_id} was deleted, and its right to buckets with it.")
        if standing.until is not None and self._clock.now() > standing.until:
            raise Forbidden(f"Job {job_id} is over, and so is its right to buckets.")
        return principal_of_job(job_id, standing.project)

    async def look(self, bucket: str) -> BucketInfo:
        """Information on a bucket. Raises NotFound where there is none."""
        return await self._buckets.get(bucket)

    async def _standing(self, job_id: str) -> JobStanding | None:
        job = await self._store.load(job_id)
        return None if job is None else JobStanding(job.project, lasts_until(job))
