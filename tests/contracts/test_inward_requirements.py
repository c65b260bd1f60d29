"""Pip follows no requirement into the server's own network, by whatever name, redirect or dependency.

The name is one that this machine's own hosts file gives to an address inside. What is inside are web servers
of the test, which count who asks.
"""

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from tests.contracts.test_venv_runtimes import Place, a_wheel, place, settled
from trainshed.core.jobs.readiness import ReadinessState
from trainshed.core.jobs.verdict import Cause
from trainshed.core.supplies.inward import inward
from trainshed.runtimes.venvs import RuntimeLimits

__all__ = ["place"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def an_inward_name() -> str:
    """A name beside localhost that leads inward here; empty where this machine has none."""
    for name in (socket.gethostname(), "ip6-localhost", "localhost.localdomain"):
        try:
            addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(name, 80, socket.AF_INET)}
        except OSError:
            continue
        if name != "localhost" and addresses and inward(addresses):
            return name
    return ""


NAME = an_inward_name()
needs_name = pytest.mark.skipif(
    not NAME, reason="no name of this machine leads inward: put one in /etc/hosts"
)


class Web:
    """Serves a folder, and redirects where it is told to; `asked` has each path that was asked for."""

    def __init__(self, folder: Path) -> None:
        web, self.asked, self.redirects = self, list[str](), dict[str, str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append(self.path)
                file = folder / self.path.strip("/")
                if place := web.redirects.get(self.path):
                    self.send_response(302)
                    self.send_header("Location", place)
                    body = b""
                elif file.is_file():
                    self.send_response(200)
                    body = file.read_bytes()
                elif file.is_dir():  # an index
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                    body = "".join(
                        f"<a href='{item.name}'>{item.name}</a>" for item in file.iterdir()
                    ).encode()
                else:
                    self.send_response(404)
                    body = b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def url(self, name: str, host: str = "") -> str:
        return f"http://{host or NAME}:{self.port}/{name}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Web]:
    """What jobs must not reach."""
    folder = tmp_path / "inside"
    folder.mkdir()
    a_wheel(folder, "smallc")
    web = Web(folder)
    yield web
    web.close()


@pytest.fixture
def allowed(tmp_path: Path) -> Iterator[Web]:
    """What the operator lets requirements name; it stands for the world outside too."""
    (tmp_path / "allowed" / "smallc").mkdir(parents=True)
    a_wheel(tmp_path / "allowed", "smallc")
    a_wheel(tmp_path / "allowed" / "smallc", "smallc")
    web = Web(tmp_path / "allowed")
    yield web
    web.close()


WHEEL = "smallc-1.0-py3-none-any.whl"


async def refused(place: Place, line: str, allowed: Web | None = None) -> str:
    """Pip's last words about a line that is not followed."""
    hosts = (f"{NAME}:{allowed.port}",) if allowed else ()
    runtimes = await place.runtimes(limits=RuntimeLimits(inward_hosts=hosts))
    outcome = await settled(runtimes, (line,))
    assert outcome.standing is ReadinessState.FAILED and outcome.verdict is not None
    assert outcome.verdict.cause is Cause.PERMISSION, outcome.verdict
    assert "--inward-host" in outcome.verdict.advice
    return " ".join(outcome.verdict.lines)


@needs_name
async def test_a_name_that_leads_inward_is_not_followed(place: Place, inside: Web):
    words = await refused(place, f"smallc @ {inside.url(WHEEL)}")
    assert f"{NAME} leads to" in words
    assert inside.asked == []


@needs_name
async def test_neither_is_one_behind_tls(place: Place, inside: Web):
    line = f"smallc @ {inside.url(WHEEL).replace('http:', 'https:')}"
    assert f"{NAME} leads to" in await refused(place, line)
    assert inside.asked == []


@needs_name
async def test_a_redirect_inward_is_not_followed(place: Place, inside: Web, allowed: Web):
    allowed.redirects["/" + WHEEL] = inside.url(WHEEL)
    await refused(place, f"smallc @ {allowed.url(WHEEL)}", allowed)
    assert allowed.asked and inside.asked == []


@needs_name
async def test_a_dependency_inward_is_not_followed(place: Place, inside: Web, allowed: Web, tmp_path: Path):
    a_wheel(tmp_path / "allowed", "smalld", needs=f"smallc @ {inside.url(WHEEL)}")
    await refused(place, f"smalld @ {allowed.url('smalld-1.0-py3-none-any.whl')}", allowed)
    assert inside.asked == []


@needs_name
async def test_what_builds_a_package_is_not_fetched_from_inside(
    place: Place, inside: Web, allowed: Web, tmp_path: Path
):
    text = f'[build-system]\nrequires = ["smallc @ {inside.url(WHEEL)}"]\nbuild-backend = "smallc"\n'.encode()
    with tarfile.open(tmp_path / "allowed" / "smalld-1.0.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("smalld-1.0/pyproject.toml")
        entry.size = len(text)
        archive.addfile(entry, BytesIO(text))
    await refused(place, f"smalld @ {allowed.url('smalld-1.0.tar.gz')}", allowed)
    assert inside.asked == []


@needs_name
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
async def test_git_is_not_led_inward_either(place: Place, inside: Web):
    await refused(place, f"git+{inside.url('x.git').replace('http:', 'https:')}")
    assert inside.asked == []


@needs_name
async def test_a_host_that_the_operator_allows_is_followed(place: Place, allowed: Web):
    runtimes = await place.runtimes(limits=RuntimeLimits(inward_hosts=(f"{NAME}:{allowed.port}",)))
    assert (await settled(runtimes, (f"smallc @ {allowed.url(WHEEL)}",))).is_ready


async def test_the_operator_s_own_index_may_be_inside(place: Place, allowed: Web):
    place.environ = {"PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": allowed.url("", "127.0.0.1")}
    runtimes = await place.runtimes()
    assert (await settled(runtimes, ("smallc",))).is_ready
    assert any("smallc" in path for path in allowed.asked)


def test_a_proxy_whose_server_died_meanwhile_ends_in_silence():
    reading, writing = os.pipe()
    os.close(reading)  # as a killed server leaves it
    program = "from trainshed.runtimes.outward_proxy import main; main()"
    ended = subprocess.run(
        (sys.executable, "-c", program),
        check=False,
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
