"""What real programs report in each of the four ways is read: while they run, and after their end."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.event_bytes import event_file
from tests.studies.trial_world import BUCKET, TrialWorld, trial_world
from trainshed.core.bucket import ObjectDraft
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.tuning.measurement import MetricChannel, TrialReport, missing_sentence

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OUT = f"gs://{BUCKET}/study/1"
HYPERTUNE = sorted(ROOT.glob(".venv-*/lib/python*/site-packages/hypertune"))
TUNE = """
import json, os, time
rows, at = [], time.time()
def tell(tag, value, step=0):
    global rows, at
    at += 1e-4
    row = {"timestamp": at, "trial": "1", tag: str(value), "global_step": str(step), "checkpoint_path": ""}
    rows = [*rows, row][-100:]
    with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
        for row in rows:
            file.write(json.dumps(row, sort_keys=True) + chr(10))
"""
STAY = "import time; time.sleep(1000)"


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
async def world() -> AsyncIterator[TrialWorld]:
    async with trial_world() as world:
        yield world


def curve(report: TrialReport, name: str) -> list[tuple[int, float]]:
    return [(item.step, item.values[name]) for item in report.measurements if name in item.values]


def names(report: TrialReport, channel: MetricChannel) -> tuple[str, ...]:
    return next(look.names for look in report.looks if look.channel is channel)


async def curve_of(world: TrialWorld, job: Job, name: str, count: int) -> list[tuple[int, float]]:
    """The curve of a running job once it has so many points."""
    async with asyncio.timeout(60):
        while len(points := curve(await world.read(job, [name]), name)) < count:
            await asyncio.sleep(0.1)
    return points


async def test_hypertune_itself_is_read(world: TrialWorld) -> None:
    if not HYPERTUNE:
        pytest.skip("needs cloudml-hypertune in .venv-sdk (make sdk)")
    source = f"""
import sys
sys.path.append({str(HYPERTUNE[0].parent)!r})
import hypertune
tuner = hypertune.HyperTune()
for step in range(1, 151):
    tuner.report_hyperparameter_tuning_metric("accuracy", step / 150, global_step=step)
tuner.report_hyperparameter_tuning_metric("", float("nan"), global_step=1)
"""
    job = await world.ended(await world.submit(source, env={"CLOUD_ML_TRIAL_ID": "7"}))
    report = await world.read(job, ["accuracy", "training/hptuning/metric"])
    assert curve(report, "accuracy")[-1] == (150, 1.0)
    assert len(curve(report, "accuracy")) >= 99  # it ended before anybody could look: its last 100 reports
    assert math.isnan(curve(report, "training/hptuning/metric")[0][1])
    assert report.measurements[-1].elapsed <= 60


async def test_more_reports_than_hypertune_keeps_are_all_read_of_a_job_that_runs(world: TrialWorld) -> None:
    source = f"{TUNE}\nfor step in range(1, 301): tell('acc', step, step); time.sleep(0.02)\n{STAY}"
    job = await world.submit(source)
    points = await curve_of(world, job, "acc", 300)
    assert points == [(step, float(step)) for step in range(1, 301)]
    await world.restart()
    assert curve(await world.read(job, ["acc"]), "acc") == points


async def test_every_report_of_the_module_is_read(world: TrialWorld) -> None:
    source = (
        "from trainshed import report\n"
        "for step in range(1, 501): report.step(step, total=500, loss=1 / step, acc=step)\n"
        "report.values(final=9)"
    )
    job = await world.ended(await world.submit(source))
    report = await world.read(job, ["acc", "final"])
    assert curve(report, "acc") == [(step, float(step)) for step in range(1, 501)]
    assert curve(report, "final") == [(500, 9.0)]
    assert names(report, MetricChannel.REPORT) == ("loss", "acc", "final")


async def test_printed_lines_are_read_by_the_usual_form_or_by_a_pattern(world: TrialWorld) -> None:
    source = (
        "import sys\n"
        "for step in range(1, 4): print(f'epoch {step}/3 loss: {1 / step} acc={step / 10}')\n"
        "print('loss: 99', file=sys.stderr)\n"
        "print('best score >> 0.75')"
    )
    job = await world.ended(await world.submit(source))
    report = await world.read(job, ["acc", "loss"])
    assert curve(report, "acc") == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert curve(report, "loss")[-1] == (3, pytest.approx(1 / 3))
    by_pattern = await world.read(job, ["score"], r"(?P<name>\w+) >> (?P<value>[0-9.]+)")
    assert curve(by_pattern, "score") == [(1, 0.75)]


async def test_a_long_output_is_read_on_while_it_grows_and_again_by_the_next_server(
    world: TrialWorld,
) -> None:
    source = (
        "import time\n"
        "for step in range(1, 101):\n"
        "    print(f'noise {step}\\n' * 200 + f'step {step} loss={step}', flush=True); time.sleep(0.01)\n"
        f"{STAY}"
    )
    job = await world.submit(source)
    points = await curve_of(world, job, "loss", 100)
    assert points == [(step, float(step)) for step in range(1, 101)]
    await world.restart()
    assert curve(await world.read(job, ["loss"]), "loss") == points


async def test_event_files_are_read_while_they_grow_and_after_the_end(world: TrialWorld) -> None:
    await world.make_bucket()
    pieces = [event_file([(step, "epoch_acc", step / 10)]) for step in range(1, 4)]
    source = f"""
import os, time
place = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
os.makedirs(place + "validation"); os.makedirs(place + "train")
open(place + "train/events.out.tfevents.1", "wb").write({event_file([(1, "epoch_acc", 0.9)])!r})
file = open(place + "validation/events.out.tfevents.2", "wb", 0)
for piece in {pieces!r}:
    for part in (piece[:50], piece[50:]):
        file.write(part); time.sleep(0.3)
while not os.path.exists(place + "go"): time.sleep(0.1)
"""
    job = await world.submit(source, output=OUT)
    name = "epoch_acc"
    points = await curve_of(world, job, name, 3)
    assert points == [(step, pytest.approx(step / 10)) for step in (1, 2, 3)]
    report = await world.read(job, ["train/epoch_acc"])
    assert curve(report, "train/epoch_acc") == [(1, pytest.approx(0.9))]
    assert set(names(report, MetricChannel.TENSORBOARD)) == {"train/epoch_acc", "validation/epoch_acc"}
    # What it waits for can be put only where it sees it: it is stopped instead.
    await world.jobs.cancel((await world.get(job)).project, job.location, job.id)
    done = await world.ended(job)
    assert done.status.state is JobState.CANCELLED
    assert curve(await world.read(job, [name]), name) == points
    await world.restart()
    assert curve(await world.read(job, [name]), name) == points  # from the bucket


async def test_the_primary_counts_and_others_only_for_what_it_does_not_report(world: TrialWorld) -> None:
    primary = "print('step 1 acc=0.5')"
    other = f"{TUNE}\ntell('acc', 0.1, 1); tell('loss', 3, 1)\nprint('step 2 loss=4')"
    job = await world.ended(await world.submit(primary, other))
    report = await world.read(job, ["acc", "loss"])
    assert curve(report, "acc") == [(1, 0.5)]
    assert curve(report, "loss") == [(1, 3.0)]


async def test_all_channels_at_once_are_ranked(world: TrialWorld) -> None:
    source = (
        f"{TUNE}\nfrom trainshed import report\n"
        "report.step(1, a=1, b=1, c=1); print('step 1 a=2 b=2'); tell('a', 3, 1)"
    )
    report = await world.read(await world.ended(await world.submit(source)), ["a", "b", "c"])
    assert [item.values for item in report.measurements] == [{"a": 3.0, "b": 2.0, "c": 1.0}]


async def test_a_metric_that_is_missing_is_explained(world: TrialWorld) -> None:
    job = await world.ended(await world.submit("print('val_acc=0.5')"))
    report = await world.read(job, ["val-accuracy"])
    assert report.measurements == ()
    sentence = missing_sentence("val-accuracy", report.looks)
    assert "the output ('val_acc')" in sentence and "no AIP_TENSORBOARD_LOG_DIR" in sentence
    assert sentence.endswith("Did you mean 'val_acc'?")


async def test_event_files_of_another_project_are_not_read(world: TrialWorld) -> None:
    await world.make_bucket(project="somebody-else")
    bucket = world.assembly.storage.buckets.open(BUCKET)
    await bucket.put(ObjectDraft(name="logs/events.out.tfevents.1"), once(event_file([(1, "acc", 0.5)])))
    job = await world.submit("pass", env={"AIP_TENSORBOARD_LOG_DIR": f"gs://{BUCKET}/logs"})
    report = await world.read(await world.ended(job), ["acc"])
    assert report.measurements == ()
    assert report.looks[1].problem == f"bucket '{BUCKET}' belongs to another project"


async def test_event_files_that_a_program_uploads_are_read_from_the_bucket(world: TrialWorld) -> None:
    await world.make_bucket()
    bucket = world.assembly.storage.buckets.open(BUCKET)
    job = await world.submit(STAY, env={"AIP_TENSORBOARD_LOG_DIR": f"gs://{BUCKET}/logs"})
    name, scalars = "logs/events.out.tfevents.1", [(step, "acc", step / 4) for step in range(1, 5)]
    for count in (2, 4):  # as libraries do: the whole object anew at each flush
        await bucket.put(ObjectDraft(name=name), once(event_file(scalars[:count])))
        points = await curve_of(world, job, "acc", count)
        assert points == [(step, value) for step, _, value in scalars[:count]]


async def test_hostile_files_harm_nobody(world: TrialWorld) -> None:
    await world.make_bucket()
    source = """
import os, time
tuned, told = os.environ["CLOUD_ML_HP_METRIC_FILE"], os.environ["TRAINSHED_REPORT"]
os.symlink("/etc/shadow", tuned)
os.mkfifo(told)
place = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
os.makedirs(place)
os.symlink("/etc/shadow", place + "events.out.tfevents.0")
os.mkfifo(place + "events.out.tfevents.1")
open(place + "events.out.tfevents.2", "wb").write(os.urandom(3_000_000))
with open(place + "events.out.tfevents.3", "wb") as file: file.truncate(1 << 30)
print("x" * 1_000_000 + " acc=1")
print(" ".join(f"n{n}={n}" for n in range(100_000)))
os.write(1, os.urandom(100_000) + b"\\nacc=0.5\\n")
os.unlink(place + "events.out.tfevents.3")
"""
    job = await world.ended(await world.submit(source, output=OUT))
    report = await world.read(job, ["acc"])
    assert curve(report, "acc")[-1][1] == 0.5
    assert all(len(look.names) <= 100 for look in report.looks)
    assert "damaged" in report.looks[1].problem


async def test_what_has_not_begun_or_is_gone_has_no_measurements(world: TrialWorld) -> None:
    job = await world.submit("print('acc=1')")
    assert await world.assembly.measuring.measurements.read(job, ["acc"]) == TrialReport()
    done = await world.ended(job)
    assert curve(await world.read(done, ["acc"]), "acc") == [(1, 1.0)]
    world.assembly.measuring.measurements.forget(job.id)
    assert curve(await world.read(done, ["acc"]), "acc") == [(1, 1.0)]
