"""What one scheduling cycle costs, simulated: 10,000 jobs wait for 1,000 full nodes of 8 GPUs.

Between two cycles a few jobs end and as many come, so that each has something to decide. The floor is the
same cycle with 100 jobs waiting: the cost must not grow with the queue. With shares, the machines are divided
by a tree of 20 shares, some of which limit what one user may have. Counted is CPU time: what others do on the
machine makes a cycle wait, not work.
"""

import gc
import time
from dataclasses import replace
from datetime import timedelta
from random import Random

from tests.benchmarks.row import Row, ms
from tests.benchmarks.simulated import SimulatedScheduler
from tests.benchmarks.trace import BEGIN, TraceJob, nodes_of, trace, tree_of
from trainshed.core.queue.fleet import Admission
from trainshed.core.queue.place import Room, needs
from trainshed.core.queue.preempt import ClaimChoice

WAITING = 10_000
NODES = 1_000
FEW = 100
CYCLES = 200
CHANGES = 5  # jobs that end between two cycles, and that come
MOST = 100  # milliseconds
NOW = BEGIN + timedelta(days=1)


def long_cycles() -> list[Row]:
    return [_row("", shared=False), _row(", 20 shares", shared=True)]


def _row(more: str, *, shared: bool) -> Row:
    floor = cycles(FEW, NODES, CYCLES // 4, shared=shared)
    ours = sorted(cycles(WAITING, NODES, CYCLES, shared=shared))
    slowest = ours[int(len(ours) * 0.99)]
    return Row(
        what=f"cycle, {WAITING:,} waiting x {NODES:,} nodes{more}, p99 of CPU",
        floor=f"{ms(floor)}, {FEW} waiting",
        ours=ms(ours),
        value=slowest * 1e3,
        goal=MOST,
        unit="ms",
    )


def cycles(waiting: int, nodes: int, number: int, *, shared: bool) -> list[float]:
    """The seconds that each of so many cycles took, with what it stops for others."""
    random, (scheduler, coming) = Random(1), full(waiting, nodes, shared=shared)
    times: list[float] = []
    now = NOW
    gc.collect()
    gc.freeze()  # as a server does: what is there from the start is not looked at again
    for _ in range(number):
        now += timedelta(seconds=5)
        for id in random.sample(sorted(scheduler.running), CHANGES):
            scheduler.end(id, now)
            scheduler.submit(coming.pop().job)
        began = time.process_time()
        cycle, chosen = scheduler.decide(now)
        if (choice := ClaimChoice.of(cycle)) is not None and choice.candidates():
            choice.claims({})
        times.append(time.process_time() - began)
        for job, admission in chosen:
            scheduler.start(job, admission, now)
    gc.unfreeze()
    return times


def full(waiting: int, nodes: int, *, shared: bool) -> tuple[SimulatedScheduler, list[TraceJob]]:
    """A scheduler whose machines are full while so many wait, and jobs that may come next."""
    scheduler = SimulatedScheduler(nodes_of(nodes), tree_of(nodes) if shared else None)
    room, coming = Room(scheduler.nodes), trace(2, waiting + nodes * 10, 2)
    while any(room.gpus.values()):
        job = replace(coming.pop().job, created_at=BEGIN)
        if (places := room.place(needs(job.spec, scheduler.nodes))) is not None:
            scheduler.start(job, Admission(placements=places, admitted_at=BEGIN), NOW)
    for item in coming[:waiting]:
        scheduler.submit(replace(item.job, created_at=min(item.job.created_at, NOW)))
    return scheduler, coming[waiting:]
