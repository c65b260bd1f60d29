"""ReservedShares: the shares that people have set, with one for each persistent resource.

The scheduler and all services that ask for shares call it. `service/persistent_resources.py` puts resources
in and takes them out, after the store has them. It writes nothing.
"""

from collections.abc import Callable, Iterable

from trainshed.core.errors import Invalid, Violation
from trainshed.core.job import Job
from trainshed.core.persistent_resource import PersistentResource, with_resources
from trainshed.core.share import ShareTree

_FIELD = "job_spec.persistent_resource_id"


class ReservedShares:
    def __init__(self, shares: Callable[[], ShareTree | None]) -> None:
        self._shares = shares
        self._resources: dict[str, PersistentResource] = {}  # by full name
        self._base: ShareTree | None = None
        self._tree: ShareTree | None = None

    def __call__(self) -> ShareTree | None:
        """The same tree until something changes; None where nothing is set."""
        base = self._shares()
        if not self._resources:
            return base
        if self._tree is None or base is not self._base:
            self._base, self._tree = base, with_resources(base, self._resources.values())
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

    def _change(self, resources: Iterable[PersistentResource]) -> None:
        self._resources, self._tree = {resource.name: resource for resource in resources}, None
