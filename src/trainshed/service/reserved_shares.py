"""ReservedShares: the shares that people have set, with one for each persistent resource.

The scheduler and all services that ask for shares call it. `service/persistent_resources.py` puts resources
in and takes them out, after the store has them. Shares that have become smaller than what is reserved in them
do not count: those before them stay. It writes nothing.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from trainshed.core.errors import Invalid, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.queue.persistent_resource import PersistentResource, too_small, with_resources
from trainshed.core.queue.share import ShareTree

log = logging.getLogger(__name__)

_FIELD = "job_spec.persistent_resource_id"


class ReservedShares:
    def __init__(self, shares: Callable[[], ShareTree | None]) -> None:
        self._shares = shares
        self._resources: dict[str, PersistentResource] = {}  # by full name
        self._base: ShareTree | None = None
        self._counting: ShareTree | None = None  # the last that were large enough; at the start any
        self._tree: ShareTree | None = None
        self._warned = ""

    def __call__(self) -> ShareTree | None:
        """The same tree until something changes; None where nothing is set."""
        base = self._shares()
        if not self._resources:
            self._counting = base
            return base
        if self._tree is None or base is not self._base:
            self._base, self._counting = base, self._large_enough(base)
            self._tree = with_resources(self._counting, self._resources.values())
        return self._tree

    @property
    def resources(self) -> tuple[PersistentResource, ...]:
        """In the order in which they came."""
        return tuple(self._resources.values())

    def get(self, name: str) -> PersistentResource | None:
        return self._resources.get(name)

    def put(self, *resources: PersistentResource) -> None:
        self._change({**self._resources, **{resource.name: resource for resource in resources}}.values())

    def drop(self, resource: PersistentResource) -> None:
        self._change(other for name, other in self._resources.items() if name != resource.name)

    def check_shares(self, tree: ShareTree | None) -> None:
        """Raise Invalid for shares that have less than is reserved in them."""
        if tree is not None and (faults := tuple(too_small(tree, self._resources.values()))):
            raise Invalid(faults)

    def check(self, job: Job) -> None:
        """Raise Invalid where the job names a resource that is not there, or cannot run in one."""
        if not job.persistent_resource:
            return
        faults: list[Violation] = []
        if job.persistent_resource not in self._resources:
            sentence = (
                f"names a persistent resource that is not there, {job.persistent_resource}: "
                "create it first, or leave the field out."
            )
            faults.append(Violation(_FIELD, sentence))
        if job.spec.scheduling.is_spot:
            sentence = "cannot be SPOT in a persistent resource: leave one of the two out."
            faults.append(Violation("job_spec.scheduling.strategy", sentence))
        if faults:
            raise Invalid(tuple(faults))

    def _large_enough(self, base: ShareTree | None) -> ShareTree | None:
        """These shares, or those before them where less is left than is reserved."""
        try:
            self.check_shares(base)
        except Invalid as error:
            former = self._counting
            kept = base
            if base is not None and former is not None and former.shares is not base.shares:
                kept = replace(former, past=base.past, accounts=base.accounts)
            if str(error) != self._warned:
                stay = "" if kept is base else " The shares stay as they are."
                log.warning("Less is left in the shares than is reserved: %s%s", error, stay)
            self._warned = str(error)
            return kept
        self._warned = ""
        return base

    def _change(self, resources: Iterable[PersistentResource]) -> None:
        self._resources, self._tree = {resource.name: resource for resource in resources}, None
