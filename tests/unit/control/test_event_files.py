"""Event files are read once, from where the last read ended, whatever happens to them."""

from dataclasses import replace
from typing import Any, cast

import google_crc32c
import pytest

from tests.builders import T0, a_job, at
from tests.event_bytes import VERSION, event, event_file, record, simple
from trainshed.control.event_files import MOST_FILES, EventFiles, log_folder
from trainshed.core.bucket import BucketInfo
from trainshed.core.errors import Conflict
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.tuning.measurement import settled
from trainshed.core.view import Views, ViewScan, Written
from trainshed.testing.bucket import MemoryBuckets

crc: Any = getattr(google_crc32c, "value")  # noqa: B009 - untyped
JOB = a_job(output="gs://bucket/out")
LOGS = "out/logs/"


class Files:
    """The view of a job, in memory: what of it the reader of event files asks for."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.asked: list[tuple[str, int]] = []
        self.gone = False

    def view_of(self, job: str) -> str | None:
        return "0.0"

    async def scan(self, job: str) -> ViewScan:
        return ViewScan(
            files=tuple(
                Written(
                    bucket="bucket",
                    name=name,
                    path=f"/{name}",
                    size=len(content),
                    stamp=str(hash(content)),
                    changed_at=T0,
                )
                for name, content in self.content.items()
            )
        )

    async def tail(self, file: Written, offset: int, most: int) -> bytes:
        if self.gone:
            raise Conflict("It is gone.")
        self.asked.append((file.name, offset))
        return self.content[file.name][offset : offset + most]


class Clock:
    def now(self):
        return at(0)


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
async def events(files: Files) -> EventFiles:
    buckets = MemoryBuckets(Clock())
    await buckets.create(
        BucketInfo(name="bucket", project="shed", location="US", created_at=T0, updated_at=T0)
    )
    return EventFiles(cast(Views, files), buckets, crc, ("acc",))


def steps(events: EventFiles, name: str = "acc") -> list[int]:
    return [point.step for point in settled(events.curves.get(name, []))]


def ended(job: Job) -> Job:
    return replace(job, status=replace(job.status, state=JobState.SUCCEEDED))


async def test_a_file_that_grows_is_read_on_and_one_that_does_not_is_left_alone(
    events: EventFiles, files: Files
):
    name, whole = f"{LOGS}events.out.tfevents.1", event_file([(1, "acc", 1), (2, "acc", 2)])
    half = len(event_file([(1, "acc", 1)]))
    files.content[name] = whole[: half + 5]
    await events.look(JOB)
    await events.look(JOB)
    assert (steps(events), files.asked) == ([1], [(name, 0)])
    files.content[name] = whole
    await events.look(JOB)
    assert (steps(events), files.asked[1:]) == ([1, 2], [(name, half)])


async def test_another_file_of_the_same_name_is_read_from_its_start(events: EventFiles, files: Files):
    name = f"{LOGS}events.out.tfevents.1"
    files.content[name] = event_file([(1, "acc", 1), (2, "other name", 2)])
    await events.look(JOB)
    files.content[name] = event_file([(5, "acc", 1), (6, "acc", 2), (7, "a long name of a tag", 3)], at=2e9)
    await events.look(JOB)
    assert steps(events) == [1, 5, 6]
    files.content[name] = event_file([(9, "acc", 1)], at=3e9)  # a shorter one
    await events.look(JOB)
    assert steps(events) == [1, 5, 6, 9]


async def test_a_damaged_file_is_not_read_again_and_again(events: EventFiles, files: Files):
    name = f"{LOGS}events.out.tfevents.1"
    files.content[name] = event_file([(1, "acc", 1)]) + b"\1" * 100
    await events.look(JOB)
    assert events.problem == f"{name} is damaged"
    count = len(files.asked)
    await events.look(JOB)
    assert (steps(events), len(files.asked)) == ([1], count)


async def test_images_between_scalars_cost_no_reading(events: EventFiles, files: Files):
    name = f"{LOGS}events.out.tfevents.1"
    image = record(b"\0" * 5_000_000)
    files.content[name] = VERSION + image * 3 + event(7, simple("acc", 1))
    await events.look(JOB)
    assert steps(events) == [7]
    assert len(files.asked) <= 4


async def test_the_run_that_counts_is_the_folder_itself_then_one_for_validation(
    events: EventFiles, files: Files
):
    for number, run in enumerate(("train/", "validation/", ""), 1):
        files.content[f"{LOGS}{run}events.out.tfevents.x"] = event_file([(number, "acc", 1)])
        await events.look(JOB)
        assert steps(events) == [number]
    assert list(events.names) == ["train/acc", "validation/acc", "acc"]


async def test_other_files_and_other_folders_are_left_alone(events: EventFiles, files: Files):
    for name in ("out/logs/model.bin", "out/events.out.tfevents.1", "out/logsx/events.out.tfevents.1"):
        files.content[name] = event_file([(1, "acc", 1)])
    await events.look(JOB)
    assert (files.asked, events.problem) == ([], "")


async def test_no_more_files_are_read_than_allowed(events: EventFiles, files: Files):
    files.content = {f"{LOGS}{n:04}/events.out.tfevents.1": VERSION for n in range(MOST_FILES + 5)}
    await events.look(ended(JOB))
    assert len(files.asked) == MOST_FILES
    assert "505 event files" in events.problem


async def test_a_file_that_goes_away_while_it_is_looked_at_is_read_later(events: EventFiles, files: Files):
    files.content[f"{LOGS}events.out.tfevents.1"] = event_file([(1, "acc", 1)])
    files.gone = True
    await events.look(JOB)
    assert (events.is_partial, events.problem) == (True, "It is gone")
    files.gone = False
    await events.look(JOB)
    assert (events.is_partial, events.problem, steps(events)) == (False, "", [1])


async def test_steps_and_times_that_are_none_are_left_out(events: EventFiles, files: Files):
    wrong = event(-1, simple("acc", 1)) + event(1 << 62, simple("acc", 1))
    files.content[f"{LOGS}events.out.tfevents.1"] = wrong + event(3, simple("acc", 1), at=float("nan"))
    await events.look(JOB)
    assert steps(events) == []


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "no AIP_TENSORBOARD_LOG_DIR"),
        ("/data/x", "AIP_TENSORBOARD_LOG_DIR is /data/x/logs/, which is in no bucket"),
    ],
)
async def test_a_job_without_a_bucket_for_its_logs_is_told_so(events: EventFiles, output: str, problem: str):
    await events.look(a_job(output=output))
    assert events.problem == problem


def test_the_jobs_own_variable_says_where_its_logs_are():
    pool = replace(JOB.spec.pools[0], env=(("AIP_TENSORBOARD_LOG_DIR", "/gcs/bucket/mine"),))
    assert log_folder(JOB) == "gs://bucket/out/logs/"
    assert log_folder(a_job(pool)) == "/gcs/bucket/mine"
