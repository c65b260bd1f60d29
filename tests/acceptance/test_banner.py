"""What `trainshed up` prints when it is ready, pasted into a shell that knows nothing of the first."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import Sentence
from tests.live import PATIENCE, LiveServer, until
from tests.weed import weed_on_path

ASK = '"$PYTHON" -m trainshed.cli ls'


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "2", "--memory", "8GiB") as found:
        yield found


def pasted(server: LiveServer, more: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The banner's own line, and what comes after it, in a shell with next to nothing set."""
    [line] = until(lambda: re.findall(r'^ +use it +(eval ".*?") +then', server.said(), re.MULTILINE))
    return subprocess.run(
        ["bash", "-c", f"{line}\n{more}"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(server.base), "PYTHON": sys.executable, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_line_of_the_banner_leads_another_shell_to_this_server(server: LiveServer) -> None:
    job = server.submit(["true"], name="here")
    done = pasted(server, ASK, TRAINSHED_PROJECT="p1")
    assert job.rpartition("/")[2] in done.stdout, done.stderr
    done = pasted(
        server, ASK, TRAINSHED_PROJECT="p1", TRAINSHED_URL="http://127.0.0.1:1", TRAINSHED_TOKEN="x"
    )
    assert job.rpartition("/")[2] in done.stdout, done.stderr


@pytest.mark.fault(
    "The server",
    "A command asks for a server that is gone",
    "It says how to start one, and sets no variables.",
    sentence="start a server with: trainshed up --home …",
)
def test_the_line_of_the_banner_says_so_where_the_server_is_gone(
    sentence: Sentence, server: LiveServer
) -> None:
    said = pasted(server, 'echo "$TRAINSHED_URL"').stdout
    assert said == f"{server.url}\n"
    server.kill()
    done = pasted(server, 'echo "[$TRAINSHED_URL]"')
    assert done.stdout == "[]\n"
    assert sentence.is_in(done.stderr) and str(server.home) in done.stderr
    server.log.unlink()
    server.start()


def test_the_line_of_the_banner_brings_the_variables_of_the_s3_store() -> None:
    ask = 'echo "$AWS_ENDPOINT_URL $AWS_ACCESS_KEY_ID"'
    with LiveServer("--s3", env={"PATH": weed_on_path()}) as server:
        endpoint, key = pasted(server, ask).stdout.split()
        assert endpoint.startswith("http://127.0.0.1:")
        assert key
        server.kill()
        server.flags = ()
        server.log.unlink()
        server.start()
        assert pasted(server, ask).stdout == " \n", "a store that is gone is not told of"


def test_a_home_that_a_shell_would_read_otherwise_is_quoted(tmp_path: Path) -> None:
    home = tmp_path / "my $HOME; it's"
    with LiveServer(home=home) as server:
        assert pasted(server, 'echo "$TRAINSHED_URL"').stdout == f"{server.url}\n"
