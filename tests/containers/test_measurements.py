"""What trials in containers report in each of the four ways is read, as it is of processes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_measurements import HYPERTUNE
from tests.acceptance.test_submit import Person
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.event_bytes import event_file
from tests.live import LiveServer
from trainshed import report

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

BUCKET = "results"
STEPS = {1: 0.25, 2: 0.5, 3: 0.75}  # the values are the same as 32-bit floats, which event files have
# Each way alone, as a program of that kind has it. The image lacks both packages; they lie beside it.
PROGRAM = """
import os, sys
[way] = [word.removeprefix("--way=") for word in sys.argv if word.startswith("--way=")]
STEPS = {1: 0.25, 2: 0.5, 3: 0.75}
assert os.path.exists("/.trainshed"), "this is no container"
if way == "report":
    import report
    for step, value in STEPS.items():
        report.step(step, total=3, score=value)
elif way == "hypertune":
    import hypertune
    tuner = hypertune.HyperTune()
    for step, value in STEPS.items():
        tuner.report_hyperparameter_tuning_metric("score", value, global_step=step)
elif way == "events":
    place = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "events.out.tfevents.1"), "wb") as file:
        file.write(open("events.bin", "rb").read())
else:
    for step, value in STEPS.items():
        print(f"after {step} rounds >> {value}", flush=True)
"""


@pytest.fixture
def server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    with LiveServer(*flags, "--cpus", "8", "--memory", "32GiB") as live:
        live.post("/storage/v1/b?project=local", {"name": BUCKET})
        yield live
        assert "Traceback" not in live.said(), live.said()


def test_each_of_the_four_ways_reports_from_a_container(server: LiveServer, tmp_path: Path) -> None:
    person = Person(server, tmp_path)
    person.write(train__py=PROGRAM)
    shutil.copy(str(report.__file__), tmp_path / "report.py")
    (tmp_path / "events.bin").write_bytes(
        event_file([(step, "score", value) for step, value in STEPS.items()])
    )
    ways = ["report", "events", "lines"]
    if HYPERTUNE:
        ways.append("hypertune")
        shutil.copytree(HYPERTUNE[0], tmp_path / "hypertune")
    done = person(
        *("tune", "train.py", "--image", BASE, "--machine", "n1-standard-1", "--name", "ways"),
        *("--param", f"way={','.join(ways)}", "--maximize", "score", "--output", f"gs://{BUCKET}/ways"),
        *("--pattern", r"after (?P<step>\d+) rounds >> (?P<value>[0-9.]+)", "--algorithm", "grid"),
        *("--trials", str(len(ways)), "--parallel", "2"),
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = json.loads(person("study", "trials", "ways", "--json").stdout)
    study = listed[0]["name"].rpartition("/trials/")[0]
    curves = {curve["trial"]: curve for curve in server.get(f"/v1/{study}:curves")["curves"]}
    reported = {
        trial["parameters"][0]["value"]: dict(
            zip(curves[trial["id"]]["steps"], curves[trial["id"]]["values"], strict=True)
        )
        for trial in listed
    }
    assert reported == dict.fromkeys(ways, STEPS)
    if not HYPERTUNE:
        pytest.skip("needs cloudml-hypertune in .venv-sdk (make sdk) for the fourth way")
