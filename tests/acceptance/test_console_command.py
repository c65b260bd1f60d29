"""`trainshed console` and the banner: how a person comes to the console."""

import json
from collections.abc import Iterator

import pytest

from tests.live import LiveServer, python


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--engine", "none") as server:
        yield server


def signs_in(server: LiveServer, address: str) -> bool:
    ticket = address.partition("#ticket=")[2]
    answer = server.request("POST", "/v1/console:signIn", {"ticket": ticket}, token=None)
    return answer.status == 200 and "set-cookie" in answer.headers


def test_the_command_prints_an_address_that_signs_in_one_browser(server: LiveServer):
    done = server.cli("console", "--print")
    address = done.stdout.strip()
    assert address.startswith(f"{server.url}/console/jobs#ticket=")
    assert server.token not in done.stdout + done.stderr
    assert signs_in(server, address)
    assert not signs_in(server, address)


def test_the_command_leads_to_the_page_of_a_job(server: LiveServer):
    name = server.submit(python("print('here')"), name="digits")
    told = json.loads(server.cli("console", "digits", "--json").stdout)
    job = name.rpartition("/")[2]
    assert told["url"].startswith(f"{server.url}/console/jobs/p1/us-central1/{job}#ticket=")
    assert signs_in(server, told["url"])


def test_a_job_that_is_not_there_is_named(server: LiveServer):
    done = server.cli("console", "no-such-job")
    assert done.returncode == 1 and "no-such-job" in done.stderr
