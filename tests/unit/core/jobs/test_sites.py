"""One queue over several sites: a job is placed whole at one that it may use, and waits for no other."""

from dataclasses import replace

from tests.builders import T0, a_job, a_node, a_pool, at
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import Readiness
from trainshed.core.jobs.site import placed_at
from trainshed.core.queue.admit import Cycle, admit
from trainshed.core.queue.fleet import Placement
from trainshed.core.queue.snapshot import Reservation, Snapshot
from trainshed.core.queue.waiting_jobs import WaitingJobs

HERE, THERE = "this machine", "the cluster"
NODES = (
    replace(a_node(cpus=4), name="local", site=HERE),
    replace(a_node(cpus=8), name="east", site=THERE),
    replace(a_node(cpus=8), name="west", site=THERE),
)


def job(id: str, cpus: float, replicas: int = 1) -> Job:
    return replace(a_job(a_pool(replicas, cpus=cpus)), id=id, display_name=id)


def held(node: str, cpus: float) -> Reservation:
    place = Placement(pool=0, index=0, node=node, host=node, cpus=cpus, memory=0)
    return Reservation(job=f"on-{node}", display_name=node, placements=(place,), until=at(60))


def answers(jobs: list[Job], sites: dict[str, tuple[str, ...]], *taken: Reservation) -> dict[str, object]:
    """The nodes of those that are admitted; the reasons of the others."""
    results = admit(Snapshot(nodes=NODES, held=taken, sites=sites), jobs, T0)
    return {
        result.job.id: tuple(place.node for place in result.admission.placements)
        if result.admission
        else result.refusal and result.refusal.reason
        for result in results
    }


def test_a_job_is_placed_only_at_its_sites_in_their_order():
    jobs = [job("a", 2), job("b", 2), job("c", 2)]
    sites = {"a": (HERE,), "b": (THERE,), "c": (HERE, THERE)}
    assert answers(jobs, sites) == {"a": ("local",), "b": ("east",), "c": ("local",)}
    assert answers([job("c", 2)], {"c": (HERE, THERE)}, held("local", 4)) == {"c": ("east",)}


def test_a_gang_is_never_spread_over_two_sites():
    gang = job("gang", 4, replicas=3)
    assert answers([gang], {"gang": (HERE, THERE)}) == {"gang": ("east", "east", "west")}
    assert answers([gang], {"gang": (HERE, THERE)}, held("west", 8)) == {"gang": Reason.WAITS_FOR_CAPACITY}


def test_equal_jobs_of_different_sites_get_answers_of_their_own():
    jobs = [job("a", 4), job("b", 4)]
    assert answers(jobs, {"a": (HERE,), "b": (THERE,)}, held("local", 4)) == {
        "a": Reason.WAITS_FOR_CAPACITY,
        "b": ("east",),
    }


def test_who_waits_at_one_site_is_not_passed_by_small_ones_because_another_site_has_a_head():
    large, small = job("b-large", 4), replace(job("c-small", 1), created_at=at(1))
    first = replace(job("a-first", 8, replicas=2), created_at=at(-1))
    sites = {"a-first": (THERE,), "b-large": (HERE,), "c-small": (HERE,)}
    assert answers([first, large, small], sites, held("east", 8), held("local", 1)) == {
        "a-first": Reason.WAITS_FOR_CAPACITY,
        "b-large": Reason.WAITS_FOR_CAPACITY,
        "c-small": Reason.WAITS_BEHIND_OTHERS,
    }


def test_the_walk_over_waiting_jobs_goes_on_where_another_site_is_full():
    queue = WaitingJobs()
    for name, site in (("a", HERE), ("b", HERE), ("c", THERE)):
        queue.put(job(name, 4), (site,))
    cycle = Cycle(Snapshot(nodes=NODES, held=(held("local", 4),), sites=queue.sites), T0)
    seen = [waiting.id for waiting in queue.in_order(cycle.refused) if not cycle.answer(waiting).admission]
    assert seen == ["a"]
    for name in ("a", "b", "c"):
        queue.remove(name)
    assert not queue.sites and len(queue) == 0


def test_a_job_is_told_where_it_went_and_why():
    def why(id: str, sites: tuple[str, ...], *taken: Reservation, elsewhere: str = "") -> str:
        [result] = admit(Snapshot(nodes=NODES, held=taken, sites={id: sites}), [job(id, 2)], T0)
        assert result.admission is not None
        return placed_at(result.admission, NODES, Readiness(sites=sites, elsewhere=elsewhere)).why

    assert why("a", (THERE, HERE)) == "It runs on the cluster. That comes before this machine."
    assert why("a", (HERE, THERE), held("local", 4)) == (
        "It runs on the cluster. There is no room for it on this machine now."
    )
    assert why("a", (HERE,), elsewhere="Not on the cluster: no folders.") == (
        "It runs on this machine. Not on the cluster: no folders."
    )
