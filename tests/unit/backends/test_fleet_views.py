"""The views of a fleet: a job's is with the member that has it."""

from typing import Any

from trainshed.backends.fleet_abilities import FleetViews
from trainshed.backends.fleet_member import PresentMember
from trainshed.core.view import View, ViewScan
from trainshed.testing import FakeBackend


class Shown:
    """The views of a backend that has those of some jobs."""

    def __init__(self, *jobs: str) -> None:
        self.jobs = jobs
        self.asked: list[tuple[str, str]] = []

    def view_of(self, job: str) -> str | None:
        return "0.0" if job in self.jobs else None

    def kept(self, job: str) -> str:
        return f"/kept/{job}" if job in self.jobs else ""

    def wants(self, job: str) -> bool:
        return job in self.jobs

    def __getattr__(self, name: str) -> Any:
        async def ask(job: str, *rest: object) -> object:
            self.asked.append((name, job))
            return ViewScan() if name == "scan" else ()

        return ask


class Showing(FakeBackend):
    def __init__(self, views: Any) -> None:
        super().__init__()
        self.views = views


def fleet_views(*each: Shown) -> FleetViews:
    return FleetViews([PresentMember(Showing(views), runs_as="") for views in each])


async def test_each_question_goes_to_who_has_the_view():
    first, second = Shown("a"), Shown("b")
    views = fleet_views(first, second)
    assert (views.view_of("a"), views.view_of("b"), views.view_of("c")) == ("0.0", "0.0", None)
    await views.scan("a")
    await views.scan("b")
    await views.notes("b")
    await views.shows("b", "bucket", "name")
    await views.note("b", ())
    await views.keep("b")
    assert first.asked == [("scan", "a")]
    assert [name for name, _ in second.asked] == ["scan", "notes", "shows", "note", "keep"]


async def test_a_view_is_made_by_who_has_the_program_that_waits_for_it():
    first, second = Shown(), Shown("b")
    views = fleet_views(first, second)
    assert (views.wants("b"), views.wants("c")) == (True, False)
    await views.make("b", View(project="p", named={}))
    assert (first.asked, second.asked) == ([], [("make", "b")])


async def test_of_a_job_without_a_view_the_first_answers():
    first, second = Shown(), Shown()
    views = fleet_views(first, second)
    await views.notes("c")
    assert (first.asked, second.asked) == ([("notes", "c")], [])


async def test_what_was_kept_is_found_with_either_and_goes_from_both():
    first, second = Shown(), Shown("b")
    views = fleet_views(first, second)
    assert (views.kept("b"), views.kept("c")) == ("/kept/b", "")
    await views.discard("b")
    assert first.asked == second.asked == [("discard", "b")]
