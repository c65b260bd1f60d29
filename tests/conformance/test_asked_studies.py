"""Our own views and methods of studies of the Vizier service: they have them, or say plainly why not."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse

import pytest

from tests.live import PARENT, PATIENCE, LiveServer, until
from tests.studies.asked_studies import AskedStudy, asked_study

Unique = Callable[[str], str]


@pytest.fixture
def study(server: LiveServer, unique: Unique) -> AskedStudy:
    """One trial runs, two have succeeded, one could not be tried."""
    made = asked_study(server, unique("asked"))
    running, good, bad, hopeless = made.ask(4)
    made.measure(running, 1, 0.9)
    made.complete(good, 0.25)
    made.complete(bad, 0.75)
    made.give_up(hopeless, "it burnt")
    return made


def as_tuning_job(study: AskedStudy) -> str:
    return study.path.replace("/studies/", "/hyperparameterTuningJobs/")


def test_one_study_has_its_row_under_either_name(server: LiveServer, study: AskedStudy) -> None:
    view = server.get(study.path, view="trainshed")
    row = view["trainshed"]
    assert (view["name"], row["name"], row["kind"]) == (study.name, study.name, "asked")
    assert view["studySpec"]["metrics"] == [{"metricId": "loss", "goal": "MINIMIZE"}]
    assert row["trials"] == {"total": 4, "byState": {"ACTIVE": 1, "SUCCEEDED": 2, "INFEASIBLE": 1}}
    assert (row["best"]["trial"], row["best"]["value"]) == ("2", 0.25)
    assert server.get(as_tuning_job(study), view="trainshed") == view
    # Google's own views stay as they are.
    assert "trainshed" not in server.get(study.path)
    assert server.request("GET", as_tuning_job(study)).status == 404


def test_rows_are_listed_and_filtered(server: LiveServer, study: AskedStudy) -> None:
    [row] = server.get(f"{PARENT}/studies", view="trainshed", filter=f"name={study.name.rpartition('/')[2]}")[
        "studies"
    ]
    assert row == server.get(study.path, view="trainshed")["trainshed"]
    listed = server.get(f"{PARENT}/studies", view="trainshed", pageSize=1)
    assert len(listed["studies"]) == 1 and {one["kind"] for one in listed["studies"]} == {"asked"}


def test_trials_are_ordered_and_filtered_in_our_own_view_alone(server: LiveServer, study: AskedStudy) -> None:
    asked = {"view": "trainshed", "filter": "state=SUCCEEDED", "orderBy": "value desc"}
    page = server.get(f"{study.path}/trials", **asked)
    assert [(trial["id"], trial["value"]) for trial in page["trials"]] == [("3", 0.75), ("2", 0.25)]
    assert page["totalSize"] == 2
    plain = server.get(f"{study.path}/trials", orderBy="value desc")
    assert [trial["id"] for trial in plain["trials"]] == ["1", "2", "3", "4"]
    assert "value" not in plain["trials"][0]


def test_analysis_curves_points_and_the_best_are_the_same_as_of_tuning_jobs(
    server: LiveServer, study: AskedStudy
) -> None:
    for method in ("analysis", "curves", "points", "best"):
        answer = server.get(f"{study.path}:{method}")
        assert answer == server.get(f"{as_tuning_job(study)}:{method}")
    assert server.get(f"{study.path}:analysis")["best"] == ["2"]
    best = server.get(f"{study.path}:best")
    assert (best["trial"], "customJob" in best) == ("2", False)


def test_what_only_jobs_have_is_refused_in_plain_words(server: LiveServer, study: AskedStudy) -> None:
    refused = server.request("POST", f"{study.path}:cancel", {})
    assert refused.status == 400
    assert "Clients run the trials of" in refused.error["message"]
    assert "stop it, or delete it" in refused.error["message"]
    refused = server.request("POST", f"{study.path}:resume", {"maxTrialCount": 40})
    assert refused.status == 400
    assert "it has no limits but its stopping rules" in refused.error["message"]


def test_it_is_stopped_gone_on_with_given_trials_and_deleted(server: LiveServer, study: AskedStudy) -> None:
    server.post(f"{study.path}:stop")
    study.complete("1", 0.5)
    until(lambda: server.get(study.path)["state"] == "COMPLETED")
    assert server.post(f"{study.path}:resume")["state"] == "JOB_STATE_RUNNING"
    [added] = server.post(f"{study.path}:addTrials", {"points": [{"lr": 0.5, "net": "large"}]})["trials"]
    assert study.ask() == [added["id"]]
    assert server.request("DELETE", study.path).status == 200


def test_each_change_by_a_client_is_told_to_who_watches(server: LiveServer, unique: Unique) -> None:
    study = asked_study(server, unique("watched"))
    changes: tuple[Callable[[], object], ...] = (
        lambda: study.ask(2),
        lambda: study.measure("1", 1, 0.5),
        lambda: study.complete("1", 0.25),
        lambda: study.give_up("2", "no"),
        lambda: study.create_trial({"lr": 0.5, "net": "small"}, 0.125),
        lambda: server.request("DELETE", f"{study.path}/trials/2"),
    )
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as connection:
        headers = {"Authorization": f"Bearer {server.token}"}
        connection.request("GET", f"{PARENT}/customJobs:watch", headers=headers)
        versions = told_of(study, connection.getresponse())
        assert next(versions) == 0  # it begins with everything
        for change in changes:
            change()
            now = server.get(study.path, view="trainshed")["trainshed"]["version"]
            while next(versions) < now:
                pass


def told_of(study: AskedStudy, stream: HTTPResponse) -> Iterator[int]:
    """The versions of the study that hints have; 0 where everything may have changed."""
    while line := stream.readline().decode():
        hint = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if hint.get("everything") or hint.get("name") == study.name:
            yield int(hint.get("version", 0))
