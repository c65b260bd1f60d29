"""A home with studies of many ended trials, as a server would have left them: quicker than to run them."""

import asyncio
import math
import random
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale, SearchSpace, TrialPoint
from trainshed.core.tuning.study import (
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStatus,
    Trial,
    TrialState,
)
from trainshed.core.tuning.suggestion_port import Objective
from trainshed.store.connection import insert_into
from trainshed.store.sql import SqlStore
from trainshed.store.tables import TRIALS
from trainshed.store.trials import trial_values

_TEMPLATE = JobSpec(
    pools=(
        Pool(
            machine_type="n1-standard-1",
            replicas=1,
            image="trainshed/python:3",
            command=("python", "train.py"),
        ),
    )
)
SPACE = SearchSpace(
    (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=1e-4, high=1e-1, scale=Scale.LOG),
        Parameter(id="batch", kind=ParameterKind.DISCRETE, values=(16.0, 32.0, 64.0, 128.0)),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=1, high=8),
        Parameter(id="optimizer", kind=ParameterKind.CATEGORICAL, values=("adam", "sgd", "lion")),
        Parameter(
            id="momentum",
            kind=ParameterKind.DOUBLE,
            low=0,
            high=0.99,
            parent="optimizer",
            parent_values=("sgd",),
        ),
    )
)
STUDY = "7000000000000000000"


def keep_studies(home: Path, *studies: "tuple[Study, Sequence[Trial]]") -> None:
    """For a home without a database."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "trainshed.db"
    with ThreadPoolExecutor(1) as thread:  # a test of a page has a loop of its own in this one
        thread.submit(lambda: asyncio.run(_make(path, [study for study, _ in studies]))).result()
    connection = sqlite3.connect(path)
    with connection:
        for study, trials in studies:
            connection.executemany(
                insert_into("trials", TRIALS), (trial_values(study, trial) for trial in trials)
            )
    connection.close()


async def _make(path: Path, studies: Sequence[Study]) -> None:
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    for study in studies:
        await store.studies.insert_study(study)
    await store.close()


def ended_study(
    name: str,
    number: int,
    *,
    metrics: Sequence[str] = ("loss",),
    failing: int = 10,
    measurements: int = 3,
    at: int = 0,
) -> tuple[Study, list[Trial]]:
    """A study and its trials, each a second longer than the last. Every `failing`th has failed; 0: none."""
    began = datetime.now(UTC) - timedelta(days=1, seconds=at)
    ended = began + timedelta(seconds=number + 60)
    study = Study(
        id=str(int(STUDY) + at),
        project="old",
        location="us-central1",
        display_name=name,
        spec=StudySpec(
            space=SPACE, objectives=tuple(Objective(metric, maximize=False) for metric in metrics)
        ),
        kind=StudyKind.TUNING,
        template=_TEMPLATE,
        limits=StudyLimits(trials=max(1, number), parallel=4),
        submitter="ada",
        created_at=began,
        seed=7,
        status=StudyStatus(
            state=StudyState.FAILED if failing == 1 else StudyState.SUCCEEDED,
            message="Every trial failed." if failing == 1 else f"All {number} trials have ended.",
            started_at=began,
            ended_at=ended,
            updated_at=ended,
        ),
    )
    return study, [_trial(study, at + 1, metrics, failing, measurements) for at in range(number)]


def _trial(study: Study, number: int, metrics: Sequence[str], failing: int, measurements: int) -> Trial:
    draw = random.Random(number)
    point = _point(draw)
    started = study.created_at + timedelta(seconds=number)
    trial = Trial(
        study=study.id,
        number=number,
        point=point,
        requested_at=started,
        started_at=started,
        ended_at=started + timedelta(seconds=20 + number % 40),
    )
    if failing and number % failing == failing - 1:
        reason = "Its job failed: the program ended with exit code 1."
        return replace(trial, state=TrialState.INFEASIBLE, infeasible=reason)
    known = tuple(_measurement(point, metrics, step + 1, draw) for step in range(measurements))
    return replace(trial, state=TrialState.SUCCEEDED, measurements=known, final=known[-1])


def _point(draw: random.Random) -> TrialPoint:
    optimizer = draw.choice(("adam", "sgd", "lion"))
    point: dict[str, float | int | str] = {
        "lr": 10 ** draw.uniform(-4, -1),
        "batch": draw.choice((16.0, 32.0, 64.0, 128.0)),
        "layers": draw.randint(1, 8),
        "optimizer": optimizer,
    }
    return point | ({"momentum": draw.uniform(0, 0.99)} if optimizer == "sgd" else {})


def _measurement(point: TrialPoint, metrics: Sequence[str], step: int, draw: random.Random) -> Measurement:
    away = abs(math.log10(float(point["lr"])) + 2.5)
    loss = 0.2 + away + 1 / (step + 1) + draw.random() * 0.05
    seconds = float(point["layers"]) * (1 + draw.random() * 0.2)
    return Measurement(
        step=step,
        elapsed=float(step),
        values=dict(zip(metrics, (loss, seconds, loss * seconds), strict=False)),
    )
