"""Random trees of shares, and random jobs of their projects."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle as repeated
from typing import Any

from hypothesis import strategies as st

from tests.builders import T0, a_node, a_pool, at
from tests.shares import a_job_of, a_share, a_tree, claims_of
from trainshed.core.jobs.job import Closing, Job, JobState, Outcome
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Claim, Fit, Node
from trainshed.core.queue.share import Share, ShareTree, share_tree
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import Snapshot, held_by, is_waiting, snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs

CPUS = 8  # of the one machine
MACHINE = a_node(cpus=CPUS)
NAMES = ("a", "b", "c", "d")
amounts = st.one_of(st.none(), st.none(), st.integers(0, 4).map(float))
graces = st.lists(st.integers(0, 3), min_size=1, max_size=8)


@st.composite
def trees(draw: st.DrawFn) -> ShareTree:
    """One to four shares whose nominal amounts the machine has; some below a common one."""
    left, shares = CPUS, list[Share]()
    nested = draw(st.booleans())
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        nominal = draw(st.integers(0, left))
        left -= nominal
        shares.append(
            a_share(
                name,
                nominal,
                parent="above" if nested and name in "ab" else "root",
                borrow=draw(amounts),
                lend=draw(amounts),
                per_user=draw(st.sampled_from([None, None, None, 2.0, 4.0])),
                weight=draw(st.sampled_from([1, 1, 2, 5])),
            )
        )
    if nested:
        below = sum(share.nominal["cpus"] for share in shares if share.parent == "above")
        more = draw(st.integers(0, left))
        above = a_share("above", below + more, borrow=draw(amounts), lend=draw(amounts))
        shares.append(above)
    return a_tree(*shares)


@st.composite
def jobs(draw: st.DrawFn, most: int = 10) -> list[Job]:
    return [
        a_job_of(
            draw(st.sampled_from([*NAMES, "above", "nobody"])),
            f"{number:03d}",
            draw(st.sampled_from([1, 1, 2, 3, 4, 6, 8])),
            created_at=at(-draw(st.integers(0, 3))),
            priority=draw(st.sampled_from([0, 0, 0, 1, 2])),
            timeout=draw(st.sampled_from([10, 60, 600])),
            spot=draw(st.sampled_from([False, False, False, True])),
            user=draw(st.sampled_from(["ann", "bob"])),
        )
        for number in range(draw(st.integers(0, most)))
    ]


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Node, ...]:
    """Two or three machines of different sizes, some with GPUs."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 4, 8]), min_size=2, max_size=3))
    gpus = [tuple(f"{n}-{gpu}" for gpu in range(draw(st.sampled_from([0, 2])))) for n in range(len(sizes))]
    return tuple(a_node(f"n{n}", cpus=size, gpus=gpus[n]) for n, size in enumerate(sizes))


@st.composite
def gangs(draw: st.DrawFn) -> list[Job]:
    """Jobs of one to three replicas, some with a GPU each, and with priorities."""
    plain = draw(jobs(6))
    return [
        replace(
            job,
            spec=replace(
                job.spec,
                pools=(
                    a_pool(
                        draw(st.integers(1, 3)),
                        cpus=min(job.spec.pools[0].cpus, 3),
                        gpus=draw(st.sampled_from([0, 0, 1])),
                    ),
                ),
            ),
        )
        for job in plain
    ]


@st.composite
def trees_of_two(draw: st.DrawFn) -> ShareTree:
    """Shares of CPUs and GPUs."""
    cpus, gpus = st.integers(0, 4).map(float), st.integers(0, 2).map(float)
    return share_tree(
        Share(
            name=name,
            projects=(name,),
            nominal={"cpus": draw(cpus), "gpus": draw(gpus)},
            borrow=draw(st.sampled_from([{}, {}, {"gpus": 1.0}])),
            lend=draw(st.sampled_from([{}, {}, {"cpus": 1.0}])),
        )
        for name in NAMES[: draw(st.integers(1, 3))]
    )


class World:
    """A machine in stepped time: cycles, admissions and preemptions as the scheduler would carry them out.

    `graces` are the numbers of cycles for which those that are stopped stay, one after the other.
    """

    def __init__(
        self,
        tree: ShareTree,
        waiting: list[Job],
        nodes: tuple[Node, ...] = (MACHINE,),
        graces: Sequence[int] = (0,),
    ) -> None:
        self.tree, self.now, self.nodes = tree, T0, nodes
        self._graces, self._staying = repeated(graces), dict[str, int]()  # by job: for how many cycles more
        self.jobs = {job.id: job for job in waiting}
        self.starts: list[str] = []
        self.preempted: list[tuple[str, str]] = []  # by whom, whom

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.status.admission is not None]

    @property
    def waiting(self) -> list[Job]:
        return [job for job in self.jobs.values() if is_waiting(job)]

    def snapshot(self) -> Snapshot:
        return snapshot_of(self.jobs.values(), self.nodes, Fit.SHRINK, self.now, None, self.tree)

    def cycle(self) -> Cycle:
        """One cycle. Those that are stopped are gone before the next, or when their grace is over."""
        for job in self.running:
            if self._staying.get(job.id):
                self._staying[job.id] -= 1
            elif job.status.closing is not None:
                status = replace(job.status, closing=None, admission=None, attempt=job.status.attempt + 1)
                self.jobs[job.id] = replace(job, status=replace(status, state=JobState.QUEUED))
        queue = WaitingJobs(self.waiting, {}, self.tree)
        cycle = Cycle(self.snapshot(), self.now, queue)
        let_in = [(job, cycle.answer(job).admission) for job in cycle.walk(queue)]
        for id, mark in cycle.snapshot.earmarks.items():
            if not mark.awaited:
                self._write(id, claim=None)  # who has started needs none, and who could not loses it
        for claim in claims_of(cycle):
            victims = tuple((item.job, self.jobs[item.job].status.attempt) for item in claim.victims)
            stored = Claim(placements=claim.placements, victims=victims, claimed_at=self.now)
            self._write(claim.job.id, claim=stored)
            for item in claim.victims:
                self.preempted.append((claim.job.id, item.job))
                self._write(item.job, closing=Closing(outcome=Outcome.PREEMPTED, since=self.now))
                self._staying[item.job] = next(self._graces)
        for job, admission in let_in:
            if admission is not None:
                self.starts.append(job.id)
                self._write(
                    job.id, state=JobState.RUNNING, admission=admission, admitted_at=self.now, claim=None
                )
        return cycle

    def settle(self) -> Cycle:
        """Cycles until nothing changes any more. A circle would never end."""
        for _ in range(20 + 4 * len(self.jobs) ** 2):
            before = self.jobs.copy()
            result = self.cycle()
            if self.jobs == before and all(job.status.closing is None for job in self.running):
                return result
        raise AssertionError(f"jobs preempt each other for ever: {self.preempted[-20:]}")

    def end_next(self) -> None:
        """The running job whose time is over first ends; those of that moment with it."""
        ends = {job.id: held_by(job, self.now).until for job in self.running}
        self.now = max(self.now, min(ends.values()))
        for id, until in ends.items():
            if until <= self.now:
                del self.jobs[id]
                self._staying.pop(id, None)

    def use(self) -> ShareUse:
        use = ShareUse(self.tree, {"cpus": CPUS})
        for item in self.snapshot().held:
            assert item.stake is not None
            use.take(item.stake)
        return use

    def _write(self, id: str, **changes: Any) -> None:
        job = self.jobs[id]
        self.jobs[id] = replace(job, status=replace(job.status, **changes))
