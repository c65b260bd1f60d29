"""A seeded trace of the jobs of a team, for the simulated benchmarks. No jobs of anybody are in it.

Its shape follows what was published of three GPU clusters. Philly (Microsoft, ATC '19): many groups share the
machines, most jobs use one GPU, many fail early, lengths reach from minutes to weeks. Helios (SenseTime,
SC '21): nodes of 8 GPUs, the few large jobs take most of the GPU time, people submit by day, and a job of the
same user and name takes about as long as the last one. PAI (Alibaba, NSDI '22): most runs repeat an earlier
one, a few users submit most of them, lengths have a heavy tail. The timeouts are a guess: people set round
numbers, often much larger than the run.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random

from trainshed.core.jobs.job import Job, JobSpec, Pool, Scheduling
from trainshed.core.queue.fleet import Node
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.share import Share, ShareTree, share_tree

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
DEPARTMENTS, TEAMS = 4, 4  # 20 shares in all: each team has one, and each department
USERS = 8  # of a team
PROGRAMS = 6  # that a user runs again and again
REPEATED = 0.7  # of the submits run such a program
SIZES = {1: 0.62, 2: 0.11, 4: 0.11, 8: 0.11, 16: 0.04, 32: 0.01}  # GPUs, and how many ask for so many
ON_NODE = 8  # GPUs
CPUS, MEMORY = 12.0, 96 * GIB  # for each GPU
GPU = "NVIDIA_TESLA_A100"
TIMEOUTS = tuple(timedelta(hours=hours) for hours in (1, 2, 4, 8, 12, 24, 48, 72, 168))
LONGEST = timedelta(days=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """A job as it was submitted, and what only the trace knows: how long it runs."""

    job: Job
    length: timedelta
    checkpoint: timedelta | None = None  # how often it stores one


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a user runs, perhaps many times."""

    project: str
    user: str
    name: str
    gpus: int
    minutes: float  # its median
    spread: float  # of the logarithm of its length
    timeout: timedelta
    checkpoint: timedelta | None
    is_spot: bool
    priority: int


def teams() -> tuple[str, ...]:
    return tuple(f"team-{number:02d}" for number in range(DEPARTMENTS * TEAMS))


def tree_of(nodes: int, *, per_user: bool = True) -> ShareTree:
    """20 shares: all GPUs, divided evenly. In every other team one user may have a part only."""
    own = nodes * ON_NODE // (DEPARTMENTS * TEAMS)
    shares = [Share(name=f"department-{n}", nominal={"gpus": own * TEAMS}) for n in range(DEPARTMENTS)]
    for number, project in enumerate(teams()):
        most = {"gpus": max(32.0, own * 1.5)} if per_user and number % 2 else {}
        shares.append(
            Share(
                name=project,
                parent=f"department-{number // TEAMS}",
                projects=(project,),
                nominal={"gpus": own},
                per_user=most,
                weight=1 + number % 3,
            )
        )
    return share_tree(shares)


def nodes_of(number: int) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=f"node-{at:04d}",
            host=f"10.1.{at // 250}.{at % 250}",
            cpus=CPUS * ON_NODE,
            memory=MEMORY * ON_NODE,
            gpus=tuple(str(gpu) for gpu in range(ON_NODE)),
            accelerator=GPU,
        )
        for at in range(number)
    )


def trace(seed: int, jobs: int, days: float) -> list[TraceJob]:
    """So many jobs over so many days, by their time."""
    random = Random(seed)
    times = sorted(islice(_arrivals(random, days), jobs))
    submits = _submits(random)
    return [_job(random, number, at, next(submits)) for number, at in enumerate(times)]


def machines_for(jobs: Sequence[TraceJob], days: float, load: float) -> int:
    """How many nodes these jobs use so much of."""
    hours = sum(item.length / timedelta(hours=1) * gpus_of(item.job) for item in jobs)
    return max(4, math.ceil(hours / (days * 24 * ON_NODE * load)))


def gpus_of(job: Job) -> int:
    return sum(pool.accelerators * pool.replicas for pool in job.spec.pools)


def _arrivals(random: Random, days: float) -> Iterator[datetime]:
    """Times in no order: most by day, fewer at weekends."""
    while True:
        at = BEGIN + timedelta(days=random.random() * days)
        by_day = 0.6 + 0.4 * math.sin((at.hour - 8) / 24 * 2 * math.pi)
        if random.random() < by_day * (0.6 if at.weekday() >= 5 else 1):
            yield at


def _submits(random: Random) -> Iterator[Program]:
    """What is submitted, one after another: often the same a few times."""
    names = [(project, f"user-{n}") for project in teams() for n in range(USERS)]
    random.shuffle(names)
    activity = [1 / (rank + 1) ** 0.7 for rank in range(len(names))]  # few submit most
    kept = {who: [_program(random, *who, f"train-{n}") for n in range(PROGRAMS)] for who in names}
    number = 0
    while True:
        [who] = random.choices(names, activity)
        if random.random() < REPEATED:
            program, times = random.choice(kept[who]), random.choice((1, 1, 1, 2, 4, 8))
        else:
            number += 1
            program, times = _program(random, *who, f"try-{number}", spread=1.0), 1
        for _ in range(times):
            yield program


def _program(random: Random, project: str, user: str, name: str, spread: float | None = None) -> Program:
    [gpus] = random.choices(list(SIZES), list(SIZES.values()))
    minutes = random.lognormvariate(math.log(25), 1.4) * gpus**0.25
    [asked] = random.choices((2.0, 4.0, 10.0, math.inf), (3, 3, 2, 2))  # times what it takes
    timeout = next((t for t in TIMEOUTS if t >= timedelta(minutes=min(minutes * asked, 1e6))), TIMEOUTS[-1])
    every = timedelta(minutes=random.choice((5, 10, 20, 30, 60)))
    return Program(
        project=project,
        user=f"{user}.{project}",
        name=f"{user}-{name}",
        gpus=gpus,
        minutes=minutes,
        spread=random.choice((0.05, 0.15, 0.3)) if spread is None else spread,
        timeout=timeout,
        checkpoint=every if random.random() < 0.6 else None,
        is_spot=random.random() < 0.1,
        priority=int(random.random() < 0.1),
    )


def _job(random: Random, number: int, at: datetime, program: Program) -> TraceJob:
    minutes = random.lognormvariate(math.log(program.minutes), program.spread)
    if random.random() < 0.15:
        minutes *= random.random() ** 2  # it fails, mostly early
    length = max(timedelta(seconds=10), min(timedelta(minutes=minutes), program.timeout, LONGEST))
    on_one = min(program.gpus, ON_NODE)
    pool = Pool(
        machine_type="a2-highgpu-1g",
        cpus=CPUS * on_one,
        memory=MEMORY * on_one,
        accelerator=GPU,
        accelerators=on_one,
        replicas=program.gpus // on_one,
        image="trainshed/python:3",
        command=("python", "train.py"),
        args=(program.name,),
    )
    scheduling = Scheduling(
        timeout=program.timeout, priority=program.priority, strategy="SPOT" if program.is_spot else ""
    )
    job = Job(
        id=f"{number:019d}",
        project=program.project,
        location="here",
        display_name=program.name,
        spec=JobSpec(pools=(pool,), scheduling=scheduling),
        created_at=at,
        submitter=program.user,
    )
    return TraceJob(job=job, length=length, checkpoint=program.checkpoint)
