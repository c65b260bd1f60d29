"""Packages and requirements on top of any image: made once, kept by the engine, with nothing secret in it."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.live import PATIENCE, PROJECT, LiveServer, python, until
from tests.packages import files, sdist, wheel

pytestmark = pytest.mark.containers

BUCKET = "staging"
SDIST, WHEEL = f"gs://{BUCKET}/trainer-0.1.tar.gz", f"gs://{BUCKET}/trainer-0.2-py3-none-any.whl"


MACHINE = {"machineType": "n1-standard-1"}
QUIET = {"PIP_CONFIG_FILE": "/dev/null"}
SECRET = "pa55word-of-ann"
ONLY_3 = "rm /usr/local/bin/python"  # as Debian's images are


def flags(podman: Podman) -> tuple[str, ...]:
    place = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    return (*place, "--cpus", "64", "--memory", "240GiB")


@pytest.fixture
def server(podman: Podman) -> Iterator[LiveServer]:
    with LiveServer(*flags(podman), "--offline", env=QUIET) as live:
        bring(live, SDIST, sdist())
        bring(live, WHEEL, wheel(version="0.2"))
        yield live
        assert "Traceback" not in live.said(), live.said()


def bring(server: LiveServer, uri: str, content: bytes) -> None:
    server.request("POST", f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
    name = uri.removeprefix(f"gs://{BUCKET}/")
    path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name)}"
    answer = server.request("POST", path, content, headers={"Content-Type": "application/gzip"})
    assert answer.status == 200, answer.body


@contextlib.contextmanager
def an_index(wheels: Mapping[str, bytes]) -> Iterator[int]:
    """A package index on loopback that wants a password; its port."""

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            word = b64encode(f"ann:{SECRET}".encode()).decode()
            content = wheels.get(self.path.rpartition("/")[2])
            names = [name for name in wheels if self.path.strip("/") == f"simple/{name.partition('-')[0]}"]
            links = "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode()
            allowed = self.headers.get("Authorization") == f"Basic {word}"
            self.send_response(401 if not allowed else 200 if content or links else 404)
            if not allowed:
                self.send_header("WWW-Authenticate", "Basic realm=index")
            self.send_header("Content-Type", "application/octet-stream" if content else "text/html")
            self.end_headers()
            self.wfile.write((content or links) if allowed else b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as index:
        threading.Thread(target=index.serve_forever, daemon=True).start()
        yield index.server_port
        index.shutdown()


def pool(*packages: str, image: str = BASE, module: str = "trainer.task", args: tuple[str, ...] = ()) -> Any:
    spec = {"executorImageUri": image, "packageUris": packages, "pythonModule": module, "args": args}
    return {"machineSpec": MACHINE, "replicaCount": 1, "pythonPackageSpec": spec}


def ended(server: LiveServer, job: str, state: str = "JOB_STATE_SUCCEEDED") -> list[str]:
    done = server.wait(job, 180)
    lines = [line["text"] for line in server.lines(job)]
    assert done["state"] == state, (done.get("error"), lines, server.said())
    return lines


def trainshed(server: LiveServer, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = os.environ | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url}
    return subprocess.run(
        [sys.executable, "-m", "trainshed.cli", *words],
        cwd=folder,
        env=env | {"TRAINSHED_PROJECT": PROJECT},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )


def derived(podman: Podman) -> list[str]:
    names = podman.run("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    return sorted(name for name in names if "trainshed-derived" in name)


def test_a_source_distribution_is_installed_in_an_image_without_pip_and_without_an_index(
    server: LiveServer, podman: Podman
):
    job = server.submit(pools=[pool(SDIST, args=("--epochs", "3"))])
    assert ended(server, job) == ["0.1 --epochs 3"]
    events = server.get(f"/v1/{job}:events")["events"]
    assert any("Making image" in one["message"] for one in events if one["reason"] == "PREPARING"), events
    told = [one["message"] for one in events if one["reason"] == "INSTALLED"]
    assert any(SDIST in one for one in told) and any("Made image" in one for one in told), events


def test_many_jobs_have_one_image_made_and_later_ones_none_also_after_a_restart(
    server: LiveServer, podman: Podman
):
    before = derived(podman)
    jobs = [server.submit(pools=[pool(WHEEL, args=(str(number),))]) for number in range(4)]
    assert [ended(server, job) for job in jobs] == [[f"0.2 {number}"] for number in range(4)]
    made = derived(podman)
    assert len(set(made) - set(before)) == 1
    server.kill()
    server.start()
    assert ended(server, server.submit(pools=[pool(WHEEL, args=("again",))])) == ["0.2 again"]
    assert derived(podman) == made
    assert not [name for name in podman.containers() if "derive" in name]


def test_requirements_and_what_packages_need_come_from_where_the_server_looks(podman: Podman, tmp_path: Path):
    for name in ("first", "second"):
        (tmp_path / f"{name}-1.0-py3-none-any.whl").write_bytes(wheel(name, "1.0"))
    with LiveServer(*flags(podman), "--wheels", str(tmp_path), "--offline", env=QUIET) as server:
        bring(server, SDIST, sdist(files(needs=("first",))))
        job = server.submit(pools=[pool(SDIST)], spec={"requirements": ["second==1.0"]})
        assert ended(server, job) == ["0.1"]
        source = "import first, second; print(first.version, second.version)"
        spec = {"imageUri": BASE, "command": python(source)}
        only = {"machineSpec": MACHINE, "replicaCount": 1, "containerSpec": spec}
        job = server.submit(pools=[only], spec={"requirements": ["first", "second"]})
        assert ended(server, job) == ["1.0 1.0"]


def test_what_cannot_be_installed_ends_the_job_with_pips_own_words(server: LiveServer):
    job = server.submit(pools=[pool(SDIST)], spec={"requirements": ["no-such-thing==9"]})
    ended(server, job, "JOB_STATE_FAILED")
    failure = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert failure["cause"] == "NO_SUCH_PACKAGE", failure
    assert "no-such-thing==9" in failure["summary"]
    bring(server, SDIST, sdist({**files(), "setup.py": "raise RuntimeError('not today')"}))
    job = server.submit(pools=[pool(SDIST)])
    ended(server, job, "JOB_STATE_FAILED")
    failure = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert failure["cause"] == "BUILD_FAILED" and "not today" in failure["summary"], failure


def test_an_image_without_an_interpreter_is_told_so(server: LiveServer, podman: Podman):
    podman.run("build", "--tag", "localhost/layers-bare:1", "-", feed=b"FROM scratch\nENV A=b\n")
    job = server.submit(pools=[pool(SDIST, image="localhost/layers-bare:1")])
    ended(server, job, "JOB_STATE_FAILED")
    failure = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert "has no Python" in failure["summary"], failure


def test_what_an_image_says_of_itself_holds_with_packages_on_top(server: LiveServer, podman: Podman):
    text = f'FROM {BASE}\nENV COLOUR=blue\nWORKDIR /srv\nUSER 1234\nENTRYPOINT ["python", "-m"]\n'
    podman.run("build", "--tag", "localhost/layers-user:1", "-", feed=text.encode())
    task = "import os\nprint(os.environ['COLOUR'], os.getcwd(), os.getuid())\n"
    bring(server, SDIST, sdist(files(task=task)))
    image = "localhost/layers-user:1"
    job = server.submit(pools=[pool(SDIST, image=image)])
    assert ended(server, job) == ["blue /srv 1234"]
    home = (server.home / "containers/id").read_text()
    (name,) = [one for one in derived(podman) if home in one]
    config = json.loads(podman.run("image", "inspect", name))[0]["Config"]
    assert (config["User"], config["Entrypoint"], config["WorkingDir"]) == ("1234", ["python", "-m"], "/srv")


def test_a_script_that_the_sdk_staged_runs_in_any_image(server: LiveServer):
    line = f"pip install --upgrade pip && pip3 install -q --user /gcs/{BUCKET}/trainer-0.1.tar.gz"
    command = ["sh", "-c", f"{line} && python3 -m trainer.task --lr 0.1"]
    spec = {"imageUri": BASE, "command": command}
    job = server.submit(pools=[{"machineSpec": MACHINE, "replicaCount": 1, "containerSpec": spec}])
    assert ended(server, job) == ["0.1 --lr 0.1"]
    assert server.job(job)["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] == command


def test_an_index_with_credentials_is_used_and_told_to_nobody(podman: Podman, tmp_path: Path):
    with an_index({"guarded-1.0-py3-none-any.whl": wheel("guarded", "1.0")}) as port:
        env = {
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"http://ann:{SECRET}@127.0.0.1:{port}/simple",
        }
        with LiveServer(*flags(podman), env=env) as server:
            source = "import guarded; print(guarded.version)"
            spec = {"imageUri": BASE, "command": python(source)}
            only = {"machineSpec": MACHINE, "replicaCount": 1, "containerSpec": spec}
            job = server.submit(pools=[only], spec={"requirements": ["guarded"]})
            assert ended(server, job) == ["1.0"]
            wrong = server.submit(pools=[only], spec={"requirements": ["missing"]})
            ended(server, wrong, "JOB_STATE_FAILED")
            told = [
                server.get(f"/v1/{one}{more}") for one in (job, wrong) for more in ("", ":status", ":events")
            ]
            assert SECRET not in json.dumps(told) + server.said()
            found = subprocess.run(
                ["grep", "-rlF", SECRET, str(server.home)], capture_output=True, check=False
            )
            assert found.stdout == b""
    saved = tmp_path / "image.tar"
    for name in derived(podman):
        podman.run("save", "--output", str(saved), name)
        assert SECRET.encode() not in saved.read_bytes()
        saved.unlink()


def test_a_server_killed_while_packages_are_installed_makes_them_anew(podman: Podman, tmp_path: Path):
    gate = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}):\n    time.sleep(0.05)\n"
    content = files(version="0.7")
    with LiveServer(*flags(podman), "--wheels", str(tmp_path), "--offline", env=QUIET) as server:
        bring(server, SDIST, sdist({**content, "setup.py": gate + content["setup.py"]}))
        job = server.submit(pools=[pool(SDIST)])
        until(lambda: [one for one in podman.containers() if "-derive-" in one])
        waiting = until(lambda: server.get(f"/v1/{job}:status").get("waiting"))
        assert waiting["reason"] == "PREPARING" and BASE in waiting["message"], waiting
        server.kill()
        (tmp_path / "go").touch()
        server.start()
        assert ended(server, job) == ["0.7"]
        assert not [name for name in podman.containers() if "-derive-" in name]


def test_a_folder_runs_in_any_image_without_a_dockerfile(podman: Podman, tmp_path: Path):
    """The program finds its folder as working directory, and what requirements name."""
    image = "localhost/layers-3:1"
    podman.run("build", "--tag", image, "-", feed=f"FROM {BASE}\nRUN {ONLY_3}\n".encode())
    wheels, folder = tmp_path / "wheels", tmp_path / "work"
    wheels.mkdir()
    folder.mkdir()
    (wheels / "first-1.0-py3-none-any.whl").write_bytes(wheel("first", "1.0"))
    (folder / "lib.py").write_text("word = 'from the folder'\n")
    (folder / "train.py").write_text(
        "import first, lib, sys\nprint(lib.word, first.version, *sys.argv[1:])\n"
    )
    (folder / "needs.txt").write_text("first\n")
    with LiveServer(*flags(podman), "--wheels", str(wheels), "--offline", env=QUIET) as server:
        words = ("submit", "train.py", "--image", image, "--requirements", "needs.txt", "--", "x")
        done = trainshed(server, folder, *words)
    assert done.returncode == 0, done.stderr
    assert "from the folder 1.0 x" in done.stdout


def test_derived_images_may_go_as_other_images_do_and_are_made_again(server: LiveServer, podman: Podman):
    bring(server, WHEEL, wheel(version="0.2", commands="x = trainer:x"))
    assert ended(server, server.submit(pools=[pool(WHEEL)])) == ["0.2"]
    ledger = json.loads((server.home / "containers/images.json").read_text())
    home = (server.home / "containers/id").read_text()
    (name,) = [one for one in derived(podman) if home in one]
    assert name in json.dumps(ledger)
    # The job's container is taken away meanwhile, which Podman may stumble over.
    until(lambda: podman.run("rmi", "--force", name, check=False) and name not in derived(podman))
    assert ended(server, server.submit(pools=[pool(WHEEL)])) == ["0.2"]
    assert name in derived(podman)


def test_an_image_with_a_pip_of_its_own_is_given_no_other(server: LiveServer, podman: Podman):
    pip = "import sys; print('ERROR: the own pip was asked to', sys.argv[1]); sys.exit(1)"
    place = "$(python -c 'import site; print(site.getsitepackages()[0])')/pip"
    made = f'RUN mkdir -p {place} && touch {place}/__init__.py && echo "{pip}" > {place}/__main__.py'
    podman.run("build", "--tag", "localhost/layers-pip:1", "-", feed=f"FROM {BASE}\n{made}\n".encode())
    job = server.submit(pools=[pool(SDIST, image="localhost/layers-pip:1")])
    ended(server, job, "JOB_STATE_FAILED")
    failure = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert "the own pip was asked to install" in json.dumps(failure), failure


def test_an_engine_that_is_restarted_while_packages_are_installed_changes_nothing(
    podman: Podman, tmp_path: Path
):
    gate = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}):\n    time.sleep(0.05)\n"
    content = files(version="0.8")
    with LiveServer(*flags(podman), "--wheels", str(tmp_path), "--offline", env=QUIET) as server:
        bring(server, SDIST, sdist({**content, "setup.py": gate + content["setup.py"]}))
        job = server.submit(pools=[pool(SDIST)])
        until(
            lambda: [
                one for one, state in podman.containers().items() if "-derive-" in one and state == "running"
            ]
        )
        podman.stop()
        (tmp_path / "go").touch()
        podman.start()
        assert ended(server, job) == ["0.8"]
