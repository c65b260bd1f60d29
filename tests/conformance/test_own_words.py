"""What our own clients ask beyond Google's API: environments, why jobs wait in a list, lines since a time."""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.live import JOBS, LiveServer, pool, python

TELL = "import json, os; print(json.dumps(dict(os.environ)))"


def test_the_environment_told_is_the_environment_given(server: LiveServer) -> None:
    job = server.submit(
        pools=[pool(python(TELL), env={"MINE": "a b"}), pool(python(TELL), replicas=2)],
        spec={"baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"}},
    )
    server.wait(job)
    told = server.get(f"/v1/{job}:environment")["replicas"]
    assert [replica["task"] for replica in told] == ["workerpool0-0", "workerpool1-0", "workerpool1-1"]
    for replica in told:
        [line] = server.lines(job, task=replica["task"])
        given: dict[str, str] = json.loads(line["text"])
        variables = replica["environment"]
        assert {"CLUSTER_SPEC", "TF_CONFIG", "MASTER_ADDR", "RANK", "AIP_MODEL_DIR"} <= set(variables)
        hidden = {name for name, value in variables.items() if value.startswith("(hidden")}
        assert "STORAGE_EMULATOR_HOST" in hidden  # it carries the job's own token
        assert hidden <= set(given)
        assert {name: given.get(name) for name in variables.keys() - hidden} == {
            name: value for name, value in variables.items() if name not in hidden
        }
    assert told[0]["environment"]["MINE"] == "a b"
    [alone] = server.get(f"/v1/{job}:environment", task="workerpool1-1")["replicas"]
    assert alone == told[2]


def test_the_environment_told_names_what_the_settings_give_and_keeps_its_secrets(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("very secret")
    rows = tmp_path / "buckets.toml"
    given = (
        f'endpoint_url = "http://s3", aws_secret_access_key = "file:{tmp_path / "secret"}", MINE = "theirs"'
    )
    rows.write_text(
        f'[[jobs]]\nenv = {{ {given} }}\n[[jobs]]\nprojects = ["another"]\nenv = {{ OTHER = "1" }}\n'
    )
    with LiveServer("--buckets", str(rows)) as server:
        job = server.submit(pools=[pool(python(TELL), env={"MINE": "own"})])
        server.wait(job)
        [line] = server.lines(job)
        had: dict[str, str] = json.loads(line["text"])
        answer = server.request("GET", f"/v1/{job}:environment")
        [replica] = answer.json["replicas"]
        told = replica["environment"]
        assert (had["endpoint_url"], told["endpoint_url"]) == ("http://s3", "http://s3")
        assert (had["MINE"], told["MINE"]) == ("own", "own")
        assert had["aws_secret_access_key"] == "very secret"
        assert told["aws_secret_access_key"].startswith("(hidden")
        assert b"very secret" not in answer.body
        assert "OTHER" not in had and "OTHER" not in told


def test_a_replica_that_is_not_there_has_no_environment(server: LiveServer) -> None:
    job = server.submit(python("pass"))
    server.wait(job)
    answer = server.request("GET", f"/v1/{job}:environment?task=workerpool3-0")
    assert (answer.status, answer.error["status"]) == (404, "NOT_FOUND")
    assert "it has workerpool0-0" in answer.error["message"]


def test_a_job_that_waits_has_no_environment_yet_and_says_so(strict_server: LiveServer) -> None:
    job = strict_server.submit(pools=[pool(python("pass"), machine="n1-standard-96")])
    answer = strict_server.request("GET", f"/v1/{job}:environment")
    assert (answer.status, answer.error["status"]) == (400, "FAILED_PRECONDITION")
    assert "once it is admitted" in answer.error["message"]
    strict_server.cancel(job)


def test_a_list_says_why_a_job_waits_to_those_who_ask_for_our_view_only(strict_server: LiveServer) -> None:
    job = strict_server.submit(pools=[pool(python("pass"), machine="n1-standard-96")])
    strict_server.wait_for(job, ["JOB_STATE_QUEUED"])

    def listed(**query: str) -> Any:
        return next(one for one in strict_server.get(JOBS, **query)["customJobs"] if one["name"] == job)

    waiting = listed(view="trainshed")["waiting"]
    assert waiting == strict_server.get(f"/v1/{job}:status")["waiting"]
    assert waiting["message"]
    assert "waiting" not in listed()
    strict_server.cancel(job)


def test_lines_since_a_time_leave_out_what_was_before(server: LiveServer) -> None:
    job = server.submit(python("import time; print('early'); time.sleep(1); print('late')"))
    server.wait(job)
    early, late = server.lines(job)
    assert [line["text"] for line in server.lines(job, since=late["timestamp"][:26] + "Z")] == ["late"]
    assert server.lines(job, since="3600s") == [early, late]
    time.sleep(1.1)
    assert server.lines(job, since="1s") == []
    assert [line["text"] for line in server.lines(job, since="3600s", limit=1)] == ["late"]
    follow = server.lines(job, since=late["timestamp"][:26] + "Z", follow="true")
    assert [line["text"] for line in follow] == ["late"]


def test_a_time_that_is_none_is_refused(server: LiveServer) -> None:
    job = server.submit(python("pass"))
    for text in ("yesterday", "10m", "-5s", "2026-13-01"):
        answer = server.request("GET", f"/v1/{job}:tail?since={text}")
        assert (answer.status, "since" in answer.violations) == (400, True), text
    server.wait(job)


def test_a_job_as_it_is_told_can_be_sent_again_and_is_told_the_same(server: LiveServer) -> None:
    rules = {
        "timeout": "60s",
        "maxWaitDuration": "30s",
        "restartJobOnWorkerRestart": True,
        "priority": -3,
        "gracePeriod": "5s",
        "drainDuration": "2.5s",
        "restartRule": {"retryExitCodes": ["42", "129-255"], "maxReplicaRestarts": 1, "backoff": "0.1s"},
    }
    spec = {
        "scheduling": rules,
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"},
        "enableWebAccess": True,
        "network": "projects/p/global/networks/n",
        "serviceAccount": "me@example.org",
    }
    first = server.submit(pools=[pool(python("pass"), env={"A": "b"}), {}, pool(python("pass"))], spec=spec)
    told = server.wait(first)
    again = server.post(JOBS, {"displayName": told["displayName"], "jobSpec": told["jobSpec"]})
    assert again["jobSpec"] == told["jobSpec"]
    assert told["jobSpec"]["scheduling"]["restartRule"]["retryExitCodes"] == ["42", "129-255"]
    server.wait(again["name"])


def test_where_the_time_of_a_restarted_job_went_is_told_without_a_gap(server: LiveServer) -> None:
    program = "import os\nif not os.path.exists('{0}'): open('{0}', 'w').close(); os.kill(os.getpid(), 9)"
    mark = server.home / "was-here"
    job = server.submit(
        python(program.format(mark)), spec={"scheduling": {"restartRule": {"backoff": "0.1s"}}}
    )
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    times = server.get(f"/v1/{job}:status")["times"]
    intervals = server.get(f"/v1/{job}:intervals")["intervals"]
    assert intervals[0]["startTime"] == times["created"]
    assert intervals[-1]["endTime"] == times["ended"]
    for earlier, later in pairwise(intervals):
        assert earlier["endTime"] == later["startTime"]
    assert {interval["class"] for interval in intervals} == {"QUEUED", "SET_UP", "COMPUTED", "IDLE"}
    assert [(one["run"], one["exit"].get("signal")) for one in intervals if "exit" in one] == [
        (0, 9),
        (1, None),
    ]
    server.request("DELETE", f"/v1/{job}")
    assert server.request("GET", f"/v1/{job}").status == 404
    assert server.get(f"/v1/{job}:intervals")["intervals"] == intervals
    assert server.request("GET", f"/v1/{job[:-3]}000:intervals").status == 404
