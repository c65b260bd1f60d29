"""A hopeless trial ends long before its own end, whichever way its program reports.

The server of these tests never looks at trials that hint: what stops them is the hint.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.event_bytes import event_file
from tests.live import IMAGE, LOCATION, PROJECT
from tests.studies.study_builders import ACCURACY
from tests.studies.trial_world import BUCKET, TrialWorld, trial_world
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.tuning import advance
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import StudyLimits, StudySpec, Trial, TrialState
from trainshed.service.studies import StudyRequest

pytestmark = pytest.mark.slow

RUNG, LAST = 10, 2000
# A good trial takes no time, a bad one minutes: it would wait for its end in vain.
PROGRAM = f"""
import json, os, sys, time
x = float(sys.argv[-1].partition("=")[2])
for step in range(1, {LAST} + 1):
    tell(step, x)
    time.sleep(0 if x > 0.5 else 0.05)
"""
WAYS = {
    "output": "def tell(step, value): print(f'step {step} accuracy={value}', flush=True)",
    "report": "from trainshed import report\ndef tell(step, value): report.step(step, accuracy=value)",
    "hypertune": """
rows = []
def tell(step, value):
    row = {"timestamp": time.time(), "accuracy": str(value), "global_step": str(step)}
    rows.append(json.dumps(row))
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
        file.write(chr(10).join(rows[-100:]) + chr(10))
""",
    "event files": f"""
pieces = {[[event_file([(step, "accuracy", x)]) for step in range(1, 50)] for x in (0.9, 0.1)]!r}
def tell(step, value):
    place = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
    os.makedirs(place, exist_ok=True)
    with open(place + "events.out.tfevents.1", "ab") as file:
        file.write(pieces[value < 0.5][min(step, 49) - 1])
""",
}
SPACE = SearchSpace((Parameter(id="x", kind=ParameterKind.DOUBLE, low=0.0, high=1.0),))


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TrialWorld]:
    monkeypatch.setattr(advance, "WATCHED", timedelta(hours=1))
    async with trial_world() as world:
        yield world


async def ended(world: TrialWorld, request: StudyRequest) -> tuple[Trial, ...]:
    """The trials of a study once it is over."""
    service = world.assembly.studies.service
    study = await service.create(PROJECT, LOCATION, request)
    async with asyncio.timeout(90):
        while not study.is_final:
            await asyncio.sleep(0.1)
            study = await service.get(PROJECT, LOCATION, study.id)
    return await service.trials(study)


@pytest.mark.parametrize("way", WAYS)
async def test_a_hopeless_trial_is_stopped_soon_after_it_has_shown_that_it_is(
    world: TrialWorld, way: str
) -> None:
    await world.make_bucket()
    command = ("python", "-c", PROGRAM.replace("x = float", f"{WAYS[way]}\nx = float"))
    place = Pool(
        machine_type="n1-standard-4", cpus=1, memory=1 << 28, replicas=1, image=IMAGE, command=command
    )
    rule = StoppingRule(kind=StoppingKind.ASHA, least_step=RUNG, most_step=LAST + 1, reduction=2)
    good, bad = await ended(
        world,
        StudyRequest(
            display_name="early",
            spec=StudySpec(space=SPACE, objectives=(ACCURACY,), trial_stopping=rule),
            template=JobSpec(pools=(place,), output=f"gs://{BUCKET}/study" if way == "event files" else ""),
            limits=StudyLimits(trials=2, parallel=1, failed=0),
            points=({"x": 0.9}, {"x": 0.1}),
            seed=1,
        ),
    )
    assert (good.state, good.stopped) == (TrialState.SUCCEEDED, "")
    assert bad.state is TrialState.SUCCEEDED
    assert bad.stopped.startswith("At 10 its best value is 0.1; 1 of 2 trials")
    assert RUNG <= bad.measurements[-1].step < LAST / 2
