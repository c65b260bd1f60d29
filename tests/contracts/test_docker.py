"""The container backend keeps its promises on a real Docker too: the suites of Podman, with that engine."""

import pytest

from tests.contracts import test_container_backend as backend
from tests.contracts import test_container_shells as shells
from tests.contracts import test_container_views as views
from tests.contracts.test_container_limits import (
    bench,
    image,
    test_a_command_replaces_the_entry_point,
    test_a_fork_bomb_stays_in_its_box,
    test_a_large_gang_has_a_network_with_room_for_all_of_it,
    test_a_memory_hog_is_killed_alone_and_its_end_says_so,
    test_a_program_has_few_rights_and_no_namespace_of_the_machine,
    test_a_program_has_the_processors_it_was_given_and_no_more,
    test_a_program_whose_child_was_killed_for_memory_is_told_so_with_its_own_code,
    test_a_restarted_replica_has_its_address_again,
    test_an_image_is_run_as_it_says,
    test_an_image_whose_user_is_not_there_ends_at_once_and_says_why,
    test_an_isolated_job_reaches_its_own_replicas_and_nothing_of_this_machine_or_beyond,
    test_arguments_replace_those_of_the_image_and_variables_of_the_job_win,
    test_replicas_find_each_other_by_name_and_others_do_not_reach_them,
    test_shared_memory_is_half_of_what_it_has,
    test_two_hundred_thousand_lines_come_whole,
    test_two_jobs_can_listen_on_the_same_port,
    tools,
)
from tests.contracts.test_container_views import ordinary
from tests.docker import Docker, docker

__all__ = [
    "bench",
    "docker",
    "image",
    "ordinary",
    "test_a_command_replaces_the_entry_point",
    "test_a_fork_bomb_stays_in_its_box",
    "test_a_large_gang_has_a_network_with_room_for_all_of_it",
    "test_a_memory_hog_is_killed_alone_and_its_end_says_so",
    "test_a_program_has_few_rights_and_no_namespace_of_the_machine",
    "test_a_program_has_the_processors_it_was_given_and_no_more",
    "test_a_program_whose_child_was_killed_for_memory_is_told_so_with_its_own_code",
    "test_a_restarted_replica_has_its_address_again",
    "test_an_image_is_run_as_it_says",
    "test_an_image_whose_user_is_not_there_ends_at_once_and_says_why",
    "test_an_isolated_job_reaches_its_own_replicas_and_nothing_of_this_machine_or_beyond",
    "test_arguments_replace_those_of_the_image_and_variables_of_the_job_win",
    "test_replicas_find_each_other_by_name_and_others_do_not_reach_them",
    "test_shared_memory_is_half_of_what_it_has",
    "test_two_hundred_thousand_lines_come_whole",
    "test_two_jobs_can_listen_on_the_same_port",
    "tools",
]

pytestmark = pytest.mark.containers


@pytest.fixture(scope="session")
def podman(docker: Docker) -> Docker:
    """By this name the suites ask for their engine."""
    return docker


class TestDocker(backend.TestContainers): ...


class TestDockerShells(shells.TestContainerShells): ...


class TestDockerViews(views.TestContainers): ...
