"""What people may do with runtimes, by the words they get."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

import pytest

from tests.builders import a_job
from trainshed.core.accounts.permission import OWNER, Principal, PrincipalKind
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Conflict, NotFound
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Store
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import Runtime, RuntimePhase
from trainshed.core.supplies.runtime_port import RuntimeStore
from trainshed.service import runtimes
from trainshed.service.runtimes import RuntimeService

BUILDING = Runtime(
    id="7", name="team/own", phase=RuntimePhase.BUILDING, message="Building team/own: it begins."
)


class FakeRuntimeStore:
    """Says of a runtime what it was given to say, one word after the other, then that there is none."""

    def __init__(self, *words: Runtime) -> None:
        self._words: Iterator[Runtime] = iter(words)

    def get(self, identity: str) -> Runtime:
        found = next(self._words, None)
        if found is None:
            raise NotFound(f"There is no runtime {identity}.")
        return found


def service(*words: Runtime) -> RuntimeService:
    return RuntimeService(cast("Store", None), cast("RuntimeStore", FakeRuntimeStore(*words)))


async def test_who_follows_a_build_is_told_that_it_was_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "PACE", 0)
    told = [one async for one in service(BUILDING).follow("7", OWNER)]
    assert [one.phase for one in told] == [RuntimePhase.BUILDING, RuntimePhase.ABSENT]
    assert told[-1].message == "team/own was removed while it was built."


async def test_a_build_that_never_was_cannot_be_followed() -> None:
    with pytest.raises(NotFound):
        await anext(service().follow("7", OWNER))


PACKAGES = (Package(uri="gs://pictures/code/secret-1.0.whl", sha256="a" * 64, size=9),)
BASE = Runtime(id="1", name="trainshed/sklearn:1", phase=RuntimePhase.READY, requirements=("scipy==1",))
LAYERED = Runtime(
    id="2",
    name=BASE.name,
    phase=RuntimePhase.FAILED,
    below=BASE.id,
    packages=PACKAGES,
    requirements=("secret==1",),
    message="secret could not be built",
    lines=("secret",),
)
MADE = a_job()
JOBS = tuple(
    replace(MADE, id=id, project=project, spec=replace(MADE.spec, requirements=(project,)))
    for id, project in (("10", "vision"), ("11", "speech"))
)


class KeptRuntimes:
    """Keeps two runtimes; the jobs need those that are said."""

    def __init__(self, needs: dict[str, tuple[str, ...]]) -> None:
        self._needs = needs

    def all(self) -> tuple[Runtime, ...]:
        return (BASE, LAYERED)

    def get(self, identity: str) -> Runtime:
        return next(one for one in self.all() if one.id == identity)

    def begin(self, image: str, requirements: tuple[str, ...]) -> Runtime:
        return LAYERED

    def ids(self, jobs: Iterable[Job]) -> frozenset[str]:
        return frozenset(identity for job in jobs for identity in self._needs.get(job.id, ()))


class ActiveJobs:
    async def active(self) -> tuple[Job, ...]:
        return JOBS


def kept(**needs: tuple[str, ...]) -> RuntimeService:
    by_job = {job.removeprefix("job"): ids for job, ids in needs.items()}
    return RuntimeService(cast("Store", ActiveJobs()), cast("RuntimeStore", KeptRuntimes(by_job)))


def somebody(*projects: str) -> Principal:
    return Principal(
        PrincipalKind.ACCOUNT,
        id="ann",
        rights=frozenset(),
        by_project={project: Role.ADMIN.rights(project) for project in projects},
    )


async def test_what_is_on_top_of_a_runtime_is_shown_to_who_sees_a_project_that_uses_it() -> None:
    service = kept(job10=("1", "2"), job11=("1",))
    assert await service.all(somebody("vision")) == (
        replace(BASE, jobs=("10",)),
        replace(LAYERED, jobs=("10",)),
    )
    cut = replace(LAYERED, packages=(), requirements=(), message="", lines=())
    assert await service.all(somebody("speech")) == (replace(BASE, jobs=("11",)), cut)
    assert await service.all(somebody()) == (BASE, cut)
    everything = (replace(BASE, jobs=("10", "11")), replace(LAYERED, jobs=("10",)))
    assert await service.all(OWNER) == everything


async def test_what_is_on_top_of_a_runtime_of_no_known_project_is_shown_to_who_sees_everything() -> None:
    [_, cut] = await kept().all(somebody("vision", "speech"))
    assert (cut.packages, cut.requirements, cut.message, cut.lines) == ((), (), "", ())
    assert await kept().all(OWNER) == (BASE, LAYERED)


async def test_a_build_is_followed_with_its_lines_by_the_project_that_asked_for_it_only() -> None:
    service = kept(job11=("2",))
    service.build("trainshed/sklearn", ("secret==1",), "vision")
    for project in ("vision", "speech"):
        assert await anext(service.follow("2", somebody(project))) == LAYERED
    told = await anext(service.follow("2", somebody("other")))
    assert (told.packages, told.requirements, told.message, told.lines) == ((), (), "", ())


async def test_who_may_not_remove_a_runtime_is_told_of_jobs_in_their_own_projects_only() -> None:
    service = kept(job10=("2",), job11=("2",))
    for projects, words in (
        ((), "a job of another project"),
        (("speech",), f"job 11 '{JOBS[1].display_name}'"),
    ):
        with pytest.raises(Conflict) as refused:
            await service.remove("2", somebody(*projects))
        assert f"{LAYERED.name} is wanted by {words} and 1 more, not over yet" in refused.value.message
