"""The container backend keeps its promises on a real Docker too: the suites of Podman, with that engine."""

import pytest

from tests.contracts import test_container_backend as backend
from tests.contracts import test_container_shells as shells
from tests.contracts import test_container_views as views
from tests.contracts.container_backend import ContainerContract
from tests.contracts.test_container_views import ordinary
from tests.docker import Docker, docker

__all__ = ["docker", "ordinary"]

pytestmark = pytest.mark.containers


@pytest.fixture(scope="session")
def podman(docker: Docker) -> Docker:
    """By this name the suites ask for their engine."""
    return docker


class TestDocker(backend.TestContainers): ...


class TestDockerContainers(ContainerContract): ...


class TestDockerShells(shells.TestContainerShells): ...


class TestDockerViews(views.TestContainers): ...
