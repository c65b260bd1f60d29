"""What `ai-platform jobs submit training` uploads stays where a job comes of it, and goes where none does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.live import PROJECT, LiveServer
from trainshed.cli.failure import CommandFailed
from trainshed.client import ApiError, Unreachable
from trainshed.client.storage import StorageClient
from trainshed.dialects.ai_platform.cli.staging import StagingPlace, staged, taken_back

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--offline") as found:
        yield found


@pytest.fixture
def server(live: LiveServer) -> LiveServer:
    with closing(StorageClient(live.url, live.token)) as storage:
        if "staging" in [one["name"] for one in storage.buckets(PROJECT)]:
            for one in storage.objects("staging"):
                storage.delete("staging", one["name"])
        else:
            storage.create_bucket("staging", PROJECT, "us-central1")
    return live


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "task.py").write_text("print('trained')\n")
    return package


def there(server: LiveServer) -> dict[str, str]:
    """The generations of all objects by name."""
    with closing(StorageClient(server.url, server.token)) as storage:
        return {str(one["name"]): str(one["generation"]) for one in storage.objects("staging")}


def submit(server: LiveServer, job: str, trainer: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = ["ai-platform", "jobs", "submit", "training", job, "--package-path", str(trainer)]
    words += ["--module-name=trainer.task", "--region=us-central1", "--runtime-version=2.11"]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINSHED_", "CLOUDSDK_", "GOOGLE_"))}
    return subprocess.run(
        [sys.executable, "-m", "trainshed.cli", *words, "--staging-bucket=gs://staging", *more],
        env=env | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": PROJECT},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_that_is_refused_leaves_no_package(server: LiveServer, trainer: Path) -> None:
    done = submit(server, "wrong", trainer, "--labels=UPPER=no")
    assert done.returncode == 1 and "UPPER" in done.stderr, done.stderr
    assert there(server) == {}


def test_a_name_that_is_taken_leaves_no_package_and_takes_none(server: LiveServer, trainer: Path) -> None:
    done = submit(server, "taken", trainer)
    assert done.returncode == 0, done.stderr
    before = there(server)
    assert len(before) == 1
    again = submit(server, "taken", trainer)
    assert again.returncode == 1 and "taken" in again.stderr, again.stderr
    assert list(there(server)) == list(before)  # the job that has the name uses it
    (trainer / "task.py").write_text("print('changed')\n")
    changed = submit(server, "taken", trainer)
    assert changed.returncode == 1 and "taken" in changed.stderr, changed.stderr
    assert list(there(server)) == list(before)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (ApiError(400, "INVALID_ARGUMENT", "no"), False),
        (ApiError(409, "ALREADY_EXISTS", "no"), False),
        (CommandFailed("no"), False),
        (ApiError(503, "UNAVAILABLE", "perhaps"), True),  # there may be a job
        (Unreachable("http://here", "perhaps"), True),
    ],
)
def test_a_package_is_removed_only_where_there_is_surely_no_job(
    server: LiveServer, trainer: Path, error: Exception, kept: bool
) -> None:
    storage = StorageClient(server.url, server.token)
    with closing(storage), pytest.raises(type(error)), taken_back(storage, tuple) as fresh:
        [uri] = staged([], str(trainer), StagingPlace("staging", "job"), storage, fresh)
        assert [one.uri for one in fresh] == [uri]
        raise error
    assert bool(there(server)) == kept


def test_a_package_that_others_put_there_too_or_that_a_job_uses_is_not_removed(
    server: LiveServer, trainer: Path
) -> None:
    place, refused = StagingPlace("staging", "job"), ApiError(400, "INVALID_ARGUMENT", "no")
    with closing(StorageClient(server.url, server.token)) as storage:
        used: list[str] = []
        with pytest.raises(ApiError, match="no"), taken_back(storage, lambda: used) as fresh:
            used += staged([], str(trainer), place, storage, fresh)
            raise refused
        [name] = there(server)
        storage.delete("staging", name)
        with pytest.raises(ApiError, match="no"), taken_back(storage, tuple) as fresh:
            staged([], str(trainer), place, storage, fresh)
            with pytest.raises(ApiError, match="no"), taken_back(storage, tuple) as other:
                staged([], str(trainer), place, storage, other)
                assert (len(fresh), len(other)) == (1, 0)
                raise refused
            raise refused
    assert list(there(server)) == [name]
