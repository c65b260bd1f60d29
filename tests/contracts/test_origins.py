"""The database keeps only the record of a job's origin; the words and the roles come back when it is read."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import a_pool
from tests.contracts.store_values import SPEC, a_job
from trainshed.assembly.storage import ORIGINS
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.pool_words import PoolWords, RemoteWords
from trainshed.core.jobs.task_names import known_as, task_called
from trainshed.core.tuning.trial_job import trial_origin
from trainshed.dialects.ai_platform.origin import TrainingJobRecord, key_of, with_roles
from trainshed.dialects.kubernetes.origin import KubernetesManifest, trial_words
from trainshed.store.sql import SqlStore

TRAINING = TrainingJobRecord(job_id="mine", training_input={"runtimeVersion": "1.15"}, request="k").origin
MANIFEST = KubernetesManifest(kind="Job", name="digits", digest="d", is_indexed=True).origin
NAMED = KubernetesManifest(
    kind="JobSet",
    name="digits",
    digest="d",
    pools=(
        PoolWords(hosts=("digits-$(job-index)",), group=2, first=1),
        PoolWords(remote=RemoteWords(serves=True, row="$(host):2", list_place="/etc/list")),
    ),
).origin

OF_A_TRIAL = trial_words(
    KubernetesManifest(kind="TFJob", name="digits", digest="d", pools=(PoolWords(),), chief="worker"),
    trial_origin("7", 3),
)


def a_training_job() -> Job:
    spec = replace(SPEC, pools=with_roles((a_pool(), a_pool(2))))
    return a_job(1, spec=spec, origin=TRAINING, extras={"encryptionSpec": {"kmsKeyName": "k"}})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(f"sqlite:///{folder / 'jobs.db'}", origins=ORIGINS)
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def test_a_job_of_another_grammar_is_read_as_it_was_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        training = await store.insert(a_training_job(), (), key_of("mine"))
        manifest = await store.insert(a_job(2, origin=MANIFEST), ())
        named = await store.insert(a_job(3, origin=NAMED), ())
        trial = await store.insert(a_job(4, origin=OF_A_TRIAL), ())
    async with opened(tmp_path) as store:
        assert await store.load(training.id) == training
        assert await store.load(manifest.id) == manifest
        assert await store.load(named.id) == named
        assert await store.load(trial.id) == trial
        assert known_as(training) == "mine"
        assert task_called(training, "workerpool1-1") == "worker-replica-1"


async def test_what_is_stored_of_it_is_what_earlier_releases_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.insert(a_training_job(), ())
        await store.insert(a_job(2, origin=MANIFEST), ())
    with sqlite3.connect(tmp_path / "jobs.db") as connection:
        rows = connection.execute("SELECT kind, extras, spec FROM jobs ORDER BY id").fetchall()
    connection.close()
    assert [(kind, extras) for kind, extras, _ in rows] == [
        (
            "legacy",
            '{"encryptionSpec":{"kmsKeyName":"k"},'
            '"legacy":{"jobId":"mine","trainingInput":{"runtimeVersion":"1.15"},"request":"k"}}',
        ),
        ("manifest", '{"manifest":{"kind":"Job","name":"digits","digest":"d","indexed":true}}'),
    ]
    assert all("role" not in pool for *_, spec in rows for pool in json.loads(spec)["pools"])


async def test_the_same_request_under_the_same_key_is_the_same_job(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        first = await store.insert(a_training_job(), (), key_of("mine"))
    async with opened(tmp_path) as store:
        again = await store.insert(replace(a_training_job(), id="9"), (), key_of("mine"))
        assert again == first


async def test_a_record_that_cannot_be_read_is_told_with_the_job(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        job = await store.insert(a_job(1, origin=Origin(kind="legacy", record={"jobId": "mine"})), ())
    async with opened(tmp_path) as store:
        with pytest.raises(Unavailable, match=f"record of job {job.id} is damaged .*trainingInput"):
            await store.load(job.id)


@pytest.mark.parametrize(
    ("kind", "record", "field"),
    [
        ("pipeline", {"said": {}}, "trainingTaskInputs.baseOutputDirectory"),
        ("legacy", {"jobId": "mine", "trainingInput": {}}, "trainingInput.jobDir"),
        ("manifest", {"kind": "Pod", "name": "digits", "digest": "d"}, ""),
    ],
)
def test_each_grammar_has_its_own_name_for_the_field_of_the_output(
    kind: str, record: dict[str, object], field: str
) -> None:
    job = ORIGINS[kind](a_job(1, origin=Origin(kind=kind, record=record)))
    assert job.origin is not None
    assert (job.origin.kind, job.origin.record, job.origin.output_field) == (kind, record, field)
