"""What holds of /gcs for processes holds in containers: the same tests, with an image."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance import test_gcs_paths as of_processes
from tests.acceptance import test_gcs_unannounced as unannounced
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.live import IMAGE, JOBS, LiveServer

pytestmark = pytest.mark.containers

# Those that depend on who mounts the view: how outputs are stored is the same for all.
_HERE = (
    "test_a_model_written_below_gcs_is_in_the_bucket_with_its_manifest_when_the_job_has_succeeded",
    "test_an_object_that_a_program_opens_to_write_is_replaced_and_never_changed_in_place",
    "test_nothing_of_gcs_is_seen_outside_of_the_job",
    "test_replicas_of_a_job_see_what_the_others_write",
    "test_a_replica_that_is_restarted_beside_living_ones_comes_back_to_the_same_files",
    "test_a_restarted_replica_goes_on_from_the_last_complete_checkpoint_and_sees_no_half_one",
    "test_a_new_attempt_goes_on_from_the_last_complete_checkpoint",
    "test_checkpoints_are_stored_while_the_program_runs_and_go_when_it_removes_them",
    "test_local_paths_are_given_to_a_job_that_asks_for_them",
    "test_a_server_killed_while_it_stores_goes_on_and_the_job_ends_with_all_of_its_files",
)

# ... and those of programs that alone know of /gcs.
_UNANNOUNCED = (
    "test_a_program_that_alone_knows_of_gcs_finds_the_objects_and_leaves_its_model_in_the_bucket",
    "test_a_file_below_a_bucket_that_is_not_there_fails_the_job_and_is_kept",
    "test_replicas_that_alone_know_of_gcs_share_one_view",
    "test_a_job_that_is_tried_again_finds_what_it_has_stored_below_gcs",
    "test_files_of_a_cancelled_job_are_stored",
)

globals().update({name: getattr(of_processes, name) for name in _HERE})
globals().update({name: getattr(unannounced, name) for name in _UNANNOUNCED})


class BoxedServer(LiveServer):
    """Jobs run in a container where they do not say otherwise."""

    def post(self, path: str, body: object = None, **query: str) -> Any:
        return super().post(path, _boxed(body) if path == JOBS else body, **query)


def _boxed(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _boxed(value) for key, value in body.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(body, list):
        return [_boxed(value) for value in body]  # type: ignore[reportUnknownVariableType]
    return BASE if body == IMAGE else body


@contextmanager
def a_server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    with BoxedServer(*flags, "--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="module")
def shared_server(podman: Podman) -> Iterator[LiveServer]:
    with a_server(podman) as live:
        yield live


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, and each a bucket that is new."""
    with of_processes.a_bucket(shared_server):
        yield shared_server


@pytest.fixture
def own_server(podman: Podman) -> Iterator[LiveServer]:
    with a_server(podman) as live:
        of_processes.make_bucket(live)
        yield live
