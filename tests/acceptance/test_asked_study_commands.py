"""`study` on a study of the Vizier service: what a person sees of trials that other programs run."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_submit import Person
from tests.live import LiveServer
from tests.studies.asked_studies import AskedStudy, asked_study

HERE = "/v1/projects/local/locations/us-central1"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer() as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def study(server: LiveServer, request: pytest.FixtureRequest) -> AskedStudy:
    made = asked_study(server, request.node.name, parent=HERE)
    running, good, bad, hopeless = made.ask(4)
    for step in (1, 2, 3):
        made.measure(running, step, 1 / step)
    made.complete(bad, 0.75)
    made.complete(good, 0.25)
    made.give_up(hopeless, "it burnt")
    return made


def test_it_is_shown_listed_and_written_to_files(
    server: LiveServer, study: AskedStudy, tmp_path: Path
) -> None:
    person, identity = Person(server, tmp_path), study.name.rpartition("/")[2]
    for called in (identity, identity[:-1], study.name):
        shown = person("study", "show", called)
        assert shown.returncode == 0, shown.stderr
        assert "★ trial 2: loss 0.25" in shown.stdout
        assert "3 of 4 trials ended: " in shown.stdout
        assert "--submit" not in shown.stdout
    order = ("study", "trials", identity, "--order", "value", "--json")
    assert [trial["id"] for trial in json.loads(person(*order).stdout)][:2] == ["2", "3"]
    failed = json.loads(person("study", "trials", identity, "--state", "infeasible", "--json").stdout)
    assert [(trial["id"], trial["infeasibleReason"]) for trial in failed] == [("4", "it burnt")]
    written = person("study", "show", identity, "--csv", "study.csv", "--plot", "study.html")
    assert written.returncode == 0, written.stderr
    rows = list(csv.DictReader(io.StringIO((tmp_path / "study.csv").read_text())))
    assert [row["metrics.loss"] for row in rows] == ["0.3333333333333333", "0.25", "0.75", ""]
    assert (tmp_path / "study.html").read_text().count("<svg") >= 2


def test_its_best_point_is_told_but_no_job_can_be_had(
    server: LiveServer, study: AskedStudy, tmp_path: Path
) -> None:
    person, identity = Person(server, tmp_path), study.name.rpartition("/")[2]
    best = person("study", "best", identity)
    assert (best.returncode, "trial 2" in best.stdout, "Run it" in best.stdout) == (0, True, False)
    refused = person("study", "best", identity, "--submit")
    assert refused.returncode == 1
    assert "clients run the trials" in refused.stderr
    refused = person("study", "cancel", identity)
    assert refused.returncode == 1
    assert "stop it, or delete it" in refused.stderr
    assert person("study", "delete", identity).returncode == 0
    assert "there is no study" in person("study", "show", identity).stderr
