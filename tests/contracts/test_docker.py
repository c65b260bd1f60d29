"""The container backend keeps its promises on a real Docker too: the suites of Podman, with that engine.

What no engine has a part in is tested with Podman alone: how a program ended and whether its place is held,
which our init writes into a file, and what becomes of the files of a view, once they are mounted.
"""

from pathlib import Path

import pytest

from tests.containers.docker import Docker, docker
from tests.containers.image_shop import MINE, SECRET, Shop, named, renamed
from tests.contracts import test_container_backend as backend
from tests.contracts import test_container_shells as shells
from tests.contracts import test_container_views as views
from tests.contracts.container_backend import ContainerContract
from tests.contracts.test_container_views import ordinary
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.images import EngineImages

__all__ = ["docker", "ordinary"]

pytestmark = pytest.mark.containers


@pytest.fixture(scope="session")
def podman(docker: Docker) -> Docker:
    """By this name the suites ask for their engine."""
    return docker


def without(suite: type, name: str, *tests: str, **changes: object) -> type:
    """The suite under this name, without these tests of it."""
    assert all(hasattr(suite, test) for test in tests), tests
    return type(name, (suite,), {**dict.fromkeys(tests), **changes})


TestDocker = without(
    backend.TestContainers,
    "TestDocker",
    # Of the init
    "test_an_exit_code_is_shown_as_a_code",
    "test_a_death_by_signal_is_shown_as_a_signal",
    "test_a_death_by_signal_is_held_and_stays_one",
    "test_a_program_that_ends_badly_leaves_its_place_until_that_is_stopped",
    "test_what_ends_well_or_was_asked_to_end_is_not_held",
    "test_the_next_run_takes_the_place_of_one_that_is_held",
    "test_a_held_place_whose_holder_is_killed_has_ended_as_its_program_did",
    "test_output_is_written_while_no_server_runs",
    # Of the backend's own loop and of its records
    "test_launching_a_run_twice_gives_the_first_handle_and_one_run",  # many times at once is harder
    "test_other_work_goes_on_while_runs_are_started_and_killed",
    many=4,  # at once, each with its own end
)


class TestDockerContainers(ContainerContract): ...


class TestDockerShells(shells.TestContainerShells): ...


TestDockerViews = without(
    views.TestContainers,
    "TestDockerViews",
    # Of the files that are stored and kept
    "test_a_file_that_is_changed_or_gone_is_refused",
    "test_a_file_that_grows_is_read_on_as_it_is_and_no_link_is_followed",
    "test_what_is_to_be_kept_outlives_its_view_without_what_is_stored",
    "test_what_is_to_be_kept_outlives_the_next_view_too",
    "test_nothing_is_kept_where_all_was_stored_after_all",
    "test_a_view_that_was_on_its_way_aside_when_the_server_died_arrives",
    # Of which objects are shown
    "test_a_view_does_not_change_when_the_bucket_does",
    "test_buckets_of_other_projects_are_not_shown_and_many_objects_only_where_named",
    "test_of_a_large_bucket_only_what_the_job_names_is_shown",
    "test_a_folder_of_the_bucket_is_moved_by_copying_and_its_files_are_seen",
    "test_a_run_after_all_are_gone_begins_with_what_is_stored_once_it_may",
)


async def test_docker_loads_and_builds_what_was_judged(docker: Docker, tmp_path: Path) -> None:
    engine = Engine(str(docker.socket))
    images = EngineImages(engine)
    await images.start()
    shop = Shop(images, tmp_path)
    try:
        await shop.make("projects-own:1", "FROM scratch\nCOPY f /f\nENV A=b\n", f=b"own")
        await shop.begin()
        archive = await shop.saved("projects-own:1")
        assert SECRET in await shop.refuses(shop.load(renamed(archive, named(SECRET))))
        steps = await shop.load(renamed(archive, named("shelf:1", MINE)))
        assert {step.text for step in steps} == {"Loaded image shelf:1", f"Loaded image {MINE}"}
        assert (await images.inspect("shelf:1")).id == (await images.inspect("projects-own:1")).id
        told = await shop.build(
            "FROM projects-own:1 AS one\nFROM one\nCOPY --from=shelf:1 /f /g\nCOPY --from=one /f /h\n"
        )
        assert f"Built {MINE}" in told and "FROM projects-own:1" in told
        shop.before = await shop.names()
        assert "no role" in await shop.refuses(
            shop.build(f"FROM projects-own:1\nCOPY --from={SECRET} /secret /\n")
        )
    finally:
        await shop.clear()
        await images.close()
        await engine.close()
