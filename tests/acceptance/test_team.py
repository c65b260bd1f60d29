"""A team on one server: two projects, three people and a service account."""

import io
import json
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.live import LiveServer, pool, python, until
from tests.receivers import MailReceiver, mail_receiver

VISION, SPEECH = "vision", "speech"
SECRET = "name-that-nobody-else-may-read"
LOCATION = "locations/us-central1"


@dataclass
class Team:
    server: LiveServer
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    job: str = ""  # of the project vision

    def run(self, *words: str, who: str = "", project: str = "", code: int = 0) -> str:
        env = {"TRAINSHED_PROJECT": project} if project else {}
        env |= {"TRAINSHED_TOKEN": self.tokens[who]} if who else {}
        done = self.server.cli(*words, **env)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def ask(self, who: str, verb: str, path: str, body: object = None) -> Any:
        return self.server.request(verb, path, body, token=self.tokens[who])

    def is_hidden_from(self, who: str, verb: str, path: str, body: object = None) -> None:
        answer = self.ask(who, verb, path, body)
        assert answer.status in (403, 404), (path, answer.status, answer.body)
        assert SECRET not in answer.body.decode(), path


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    with LiveServer("--cpus", "4", "--memory", "8GiB") as server:
        team = Team(server)
        for name, words in (("ann", ()), ("bob", ()), ("eve", ()), ("bot", ("--service",))):
            team.run("users", "add", name, *words)
        team.run("groups", "set", "listeners", "bob")
        team.run("roles", "grant", "user", "ann", project=VISION)
        team.run("roles", "grant", "admin", "group:listeners", project=SPEECH)
        team.run("roles", "grant", "viewer", "bot", "--everywhere")
        for name in ("ann", "bob", "eve", "bot"):
            team.tokens[name] = team.run("tokens", "new", "--for", name).strip()
        command = python(f"import time; print('{SECRET}', flush=True); time.sleep(600)")
        answer = team.ask(
            "ann",
            "POST",
            f"/v1/projects/{VISION}/{LOCATION}/customJobs",
            {"displayName": SECRET, "jobSpec": {"workerPoolSpecs": [pool(command)]}},
        )
        assert answer.status == 200, answer.body
        team.job = answer.json["name"]
        assert team.ask("ann", "POST", f"/storage/v1/b?project={VISION}", {"name": "pictures"}).status == 200
        yield team
        assert "Traceback" not in server.said(), server.said()
        assert not any(token in server.said() for token in team.tokens.values())


def test_each_sees_the_jobs_of_the_projects_in_which_they_have_a_role(team: Team):
    assert SECRET in team.run("ls", who="ann", project=VISION)
    assert SECRET in team.run("ls", who="bot", project=VISION)
    assert "no permission jobs.list in project 'vision'" in team.run("ls", who="bob", project=VISION, code=1)
    assert SECRET not in team.run("ls", who="bob", project=SPEECH)


@pytest.mark.parametrize("who", ["bob", "eve"])
def test_nothing_of_a_project_is_seen_from_outside(team: Team, who: str):
    id = team.job.rpartition("/")[2]
    parent = f"/v1/projects/{VISION}/{LOCATION}"
    for verb in (":why", ":status", ":events", ":lines", ":output", ":tail", ":graphs", ":environment", ""):
        team.is_hidden_from(who, "GET", f"/v1/{team.job}{verb}")
        team.is_hidden_from(who, "GET", f"/v1/projects/{SPEECH}/{LOCATION}/customJobs/{id}{verb}")
        team.is_hidden_from(who, "GET", f"/v1/projects/-/{LOCATION}/customJobs/{id}{verb}")
    for path in ("customJobs", "customJobs:count", "customJobs:watch", "queue", "nodes", "models", "images"):
        team.is_hidden_from(who, "GET", f"{parent}/{path}")
        team.is_hidden_from(who, "GET", f"/v1/projects/-/{LOCATION}/{path}")
    team.is_hidden_from(who, "POST", f"/v1/{team.job}:cancel", {})
    team.is_hidden_from(who, "POST", f"/v1/{team.job}:shell", {})
    team.is_hidden_from(who, "DELETE", f"/v1/{team.job}")
    team.is_hidden_from(who, "GET", "/storage/v1/b/pictures/o")
    team.is_hidden_from(who, "GET", "/storage/v1/b/pictures")
    team.is_hidden_from(who, "POST", f"/v1/projects/{VISION}:getIamPolicy", {})
    team.is_hidden_from(who, "GET", "/metrics")
    team.is_hidden_from(who, "GET", "/v1/costs")
    team.is_hidden_from(who, "GET", f"{parent}/costs")
    team.is_hidden_from(who, "GET", "/v1/accounts")


def test_nothing_of_it_is_seen_by_calls_that_name_it_in_their_bodies(team: Team):
    own = f"/v1/projects/{SPEECH}/{LOCATION}"
    team.is_hidden_from("bob", "POST", "/v2/entries:list", {"resourceNames": [f"projects/{VISION}"]})
    team.is_hidden_from("bob", "POST", f"{own}/customJobs:compare", {"jobs": [team.job]})
    team.is_hidden_from("bob", "GET", f"{own}/customJobs:watch?logs={team.job}")
    team.is_hidden_from("bob", "GET", f"{own}/customJobs:watch?metrics={team.job}")


def test_images_named_after_it_run_in_no_job_from_outside(team: Team):
    image = f"eu-docker.pkg.dev/{VISION}/models/{SECRET}:1"
    own = f"/v1/projects/{SPEECH}/{LOCATION}"
    spec = {"workerPoolSpecs": [pool() | {"containerSpec": {"imageUri": image}}]}
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": []}
    inputs = {"scaleTier": "CUSTOM", "masterType": "n1-standard-4", "region": "us-central1"}
    pod = {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}
    task = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"
    requests = {
        f"{own}/customJobs": {"displayName": "j", "jobSpec": spec},
        f"{own}/customJobs:explain": {"displayName": "j", "jobSpec": spec},
        f"{own}/hyperparameterTuningJobs": {
            "displayName": "j",
            "maxTrialCount": 1,
            "parallelTrialCount": 1,
            "studySpec": study,
            "trialJobSpec": spec,
        },
        f"{own}/trainingPipelines": {
            "displayName": "j",
            "trainingTaskDefinition": task,
            "trainingTaskInputs": spec,
        },
        f"/v1/projects/{SPEECH}/jobs": {
            "jobId": "j",
            "trainingInput": {**inputs, "masterConfig": {"imageUri": image}},
        },
        f"{own}/manifests:apply": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j"}, "spec": pod},
    }
    for path, body in requests.items():
        answer = team.ask("bob", "POST", path, body)
        assert answer.status == 400, (path, answer.body)
        assert f"is named after project {VISION}, in which you have no role" in answer.body.decode(), path
        assert "no role" not in team.ask("ann", "POST", path.replace(SPEECH, VISION), body).body.decode(), (
            path
        )
    cache = team.ask("bob", "POST", f"{own}/imageCaches?imageCacheId=c", {"images": [image]})
    assert cache.status == 403, cache.body


def a_tar(**files: object) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def test_what_is_sent_to_the_engine_names_no_image_of_it_from_outside(team: Team):
    image = f"eu-docker.pkg.dev/{VISION}/models/{SECRET}:1"
    own = f"/v1/projects/{SPEECH}/{LOCATION}/images"
    listed = [{"Config": "c.json", "RepoTags": ["shelf:1", image], "Layers": []}]
    load = (f"{own}:load", a_tar(**{"c.json": "{}", "manifest.json": listed}))
    build = (f"{own}:build?tag=shelf:1", a_tar(Dockerfile=f"FROM python:3\nCOPY --from={image} /a /b\n"))
    for path, body in (load, build):
        answer = team.ask("bob", "POST", path, body)
        assert answer.status == 403, (path, answer.body)
        assert f"{image} is named after project {VISION}, in which you have no role: use another name." in (
            answer.body.decode()
        )
    unsure = team.ask("bob", "POST", f"{own}:build?tag=shelf:1", a_tar(Dockerfile="ARG X\n\nFROM ${X}\n"))
    assert unsure.status == 400 and "Line 3 of the Dockerfile" in unsure.body.decode(), unsure.body
    for path, body in (load, build):  # no engine is here
        for token in (team.tokens["ann"], team.server.token):
            answer = team.server.request("POST", path.replace(SPEECH, VISION), body, token=token)
            assert answer.status == 503, (path, answer.body)


def test_lists_of_the_whole_server_are_cut_to_what_the_caller_may_see(team: Team):
    for who, own in (("ann", VISION), ("bob", SPEECH)):
        projects = {row["projectId"] for row in team.ask(who, "GET", "/v1/projects").json["projects"]}
        assert projects <= {own}
    nodes = team.ask("bob", "GET", f"/v1/projects/{SPEECH}/{LOCATION}/nodes")
    [holder] = [row for row in nodes.json["nodes"][0]["holders"] if not row["job"]]
    assert holder["displayName"] == "another project" and holder["cpus"]
    assert SECRET not in nodes.body.decode() and SECRET not in team.run("nodes", who="bob", project=SPEECH)
    for query in ("", f"?project={SPEECH}"):
        assert "items" not in team.ask("bob", "GET", f"/storage/v1/b{query}").json
    assert team.ask("ann", "GET", f"/storage/v1/b?project={VISION}").json["items"][0]["name"] == "pictures"


def test_who_waits_for_a_job_of_another_project_is_not_told_its_name(team: Team):
    parent = f"/v1/projects/{SPEECH}/{LOCATION}"
    large = pool(python("pass"), machine="n1-standard-4")
    body = {"displayName": "large", "jobSpec": {"workerPoolSpecs": [large]}}
    foreseen = team.ask("bob", "POST", f"{parent}/customJobs:explain", body)
    assert foreseen.json["would"] == "wait", foreseen.json
    name = team.ask("bob", "POST", f"{parent}/customJobs", body).json["name"]
    try:
        until(lambda: "waiting" in team.ask("bob", "GET", f"/v1/{name}:status").json)
        asked = [f"/v1/{name}:why", f"/v1/{name}:status", f"/v1/{name}:events", f"{parent}/queue?eta=true"]
        answers = [foreseen.body.decode(), *(team.ask("bob", "GET", path).body.decode() for path in asked)]
        told = [text for text in answers if SECRET in text or team.job.rpartition("/")[2] in text]
        assert told == []
        assert "a job of another project" in answers[1] + answers[2], answers
        assert SECRET in team.server.request("GET", f"/v1/{name}:why").body.decode()
    finally:
        team.ask("bob", "POST", f"/v1/{name}:cancel", {})


def test_a_viewer_sees_all_and_changes_nothing(team: Team):
    assert team.ask("bot", "GET", f"/v1/{team.job}").status == 200
    team.is_hidden_from("bot", "POST", f"/v1/{team.job}:cancel", {})
    assert team.ask("bot", "POST", "/storage/v1/b?project=vision", {"name": "more"}).status == 403


def test_an_administrator_of_a_project_gives_roles_there_and_nowhere_else(team: Team):
    team.run("roles", "grant", "viewer", "eve", who="bob", project=SPEECH)
    assert "viewer in speech" in team.run("whoami", who="eve")
    team.run("roles", "revoke", "viewer", "eve", who="bob", project=SPEECH)
    assert "has no role yet" in team.run("whoami", who="eve")
    assert "roles.read" in team.run("roles", "grant", "user", "eve", who="ann", project=VISION, code=1)
    assert "accounts.write" in team.run("users", "add", "mallory", who="bob", code=1)
    assert "is nobody here" in team.run("roles", "grant", "user", "user:nobody", project=VISION, code=1)


def test_roles_have_the_shape_of_googles_policies_and_a_late_change_is_refused(team: Team):
    path = f"/v1/projects/{SPEECH}"
    policy = team.ask("bob", "POST", f"{path}:getIamPolicy", {}).json
    assert policy["bindings"] == [{"role": "roles/trainshed.admin", "members": ["group:listeners"]}]
    late = {"policy": {**policy, "etag": "older"}}
    assert team.ask("bob", "POST", f"{path}:setIamPolicy", late).status == 400
    assert team.ask("bob", "POST", f"{path}:setIamPolicy", {"policy": policy}).json == policy
    wrong = {"policy": {"bindings": [{"role": "roles/owner", "members": ["user:ann"]}]}}
    answer = team.ask("bob", "POST", f"{path}:setIamPolicy", wrong)
    assert answer.status == 400 and "policy.bindings[0].role" in answer.violations


def test_a_revoked_token_opens_nothing_from_then_on(team: Team):
    made = json.loads(team.run("tokens", "new", "--for", "ann", "--json", "--days", "1"))
    team.tokens["short"] = made["token"]
    assert team.ask("short", "GET", f"/v1/{team.job}").status == 200
    assert made["id"] in team.run("tokens", "ls", who="ann")
    assert team.ask("bob", "DELETE", f"/v1/tokens/{made['id']}").status == 403
    team.run("tokens", "revoke", made["id"], who="ann")
    assert team.ask("short", "GET", f"/v1/{team.job}").status == 401


def test_a_limited_token_makes_no_tokens(team: Team):
    words = ("tokens", "new", "--role", "viewer", "--only-project", VISION)
    team.tokens["limited"] = team.run(*words, who="ann").strip()
    assert team.ask("limited", "GET", f"/v1/{team.job}").status == 200
    assert "limited rights" in team.run("tokens", "new", who="limited", code=1)
    team.is_hidden_from("limited", "POST", f"/v1/{team.job}:cancel", {})


def test_who_is_disabled_is_out_at_once_and_comes_back(team: Team):
    team.run("users", "disable", "bot")
    assert "disabled" in team.run("whoami", who="bot", code=1)
    team.server.request("PATCH", "/v1/accounts/bot", {"displayName": "Bot"})
    assert "disabled" in team.run("whoami", who="bot", code=1)
    team.run("users", "enable", "bot")
    assert team.ask("bot", "GET", "/v1/accounts:me").status == 401
    team.tokens["bot"] = team.run("tokens", "new", "--for", "bot").strip()
    assert "viewer everywhere" in team.run("whoami", who="bot")


def test_the_console_is_that_of_the_account_that_opens_it(team: Team):
    signed_in = team.ask("bob", "POST", "/v1/console:ticket", {}).json["ticket"]
    answer = team.server.request("POST", "/v1/console:signIn", {"ticket": signed_in}, token=None)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    for project, status in ((SPEECH, 200), (VISION, 403)):
        path = f"/v1/projects/{project}/{LOCATION}/customJobs"
        assert team.server.request("GET", path, headers=headers, token=None).status == status


def test_jobs_say_who_submitted_them_whatever_the_client_claims(team: Team):
    headers = {"X-Trainshed-User": "somebody"}
    path = f"/v1/projects/{SPEECH}/{LOCATION}/customJobs?view=trainshed"
    body = {"displayName": "mine", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
    made = team.server.request("POST", path, body, headers=headers, token=team.tokens["bob"])
    assert made.status == 200, made.body
    status = team.ask("bob", "GET", f"/v1/{made.json['name']}:status").json
    assert status["submitter"] == "bob", status


def test_the_audit_log_has_who_did_what_from_where_and_who_was_refused(team: Team):
    team.is_hidden_from("eve", "POST", f"/v1/{team.job}:cancel", {})
    rows = json.loads(team.run("audit", "--json", "--limit", "1000"))
    created = [row for row in rows if row["who"] == "account ann" and row["permission"] == "jobs.create"]
    assert created and created[-1]["allowed"] and created[-1]["address"] == "127.0.0.1"
    refused = [row for row in rows if row["who"] == "account eve" and not row["allowed"]]
    assert refused[0]["path"] == f"/v1/{team.job}:cancel" and refused[0]["code"] == 403
    assert not any(token.split(".")[2] in json.dumps(rows) for token in team.tokens.values())
    own = json.loads(team.run("audit", "--json", who="bob"))
    assert own and {row.get("project") for row in own} == {SPEECH}
    assert "audit.read" in team.run("audit", who="ann", code=1)


def test_login_is_remembered_until_one_signs_out(team: Team, tmp_path: Path):
    env = {"TRAINSHED_HOME": str(tmp_path / "home")}

    def run(*words: str, feed: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "trainshed.cli", *words],
            env={"PATH": "/usr/bin:/bin", **env},
            input=feed,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    assert "not known" in run("login", "--url", team.server.url, feed="ts.0123456789.wrong", code=1)
    login = run("login", "--url", team.server.url, "--project", VISION, feed=f"{team.tokens['ann']}\n")
    assert "ann at" in login and "user in vision" in login
    assert SECRET in run("ls")
    file = tmp_path / "home" / "login.json"
    assert file.stat().st_mode & 0o777 == 0o600
    run("login", "--out")
    assert not file.exists() and "no server answers" in run("ls", code=1)


def test_accounts_survive_kill_9_at_any_moment(tmp_path: Path):
    rng = random.Random(7)
    with LiveServer() as server:
        acknowledged: list[str] = []
        for number in range(60):
            answer = server.request("POST", "/v1/accounts", {"name": f"u{number}"})
            assert answer.status == 200
            acknowledged.append(f"u{number}")
            if rng.random() < 0.15:
                server.kill()
                server.start()
        names = {row["name"] for row in server.get("/v1/accounts")["accounts"]}
        assert names >= set(acknowledged)
        token = server.post("/v1/tokens", {"account": "u1", "lifetime": "1s"})["token"]
        time.sleep(1.2)
        answer = server.request("GET", "/v1/accounts:me", token=token)
        assert answer.status == 401 and "has expired" in answer.body.decode()


def test_the_last_day_on_which_a_token_was_used_is_told_and_outlives_a_kill(team: Team):
    today = str(datetime.now(UTC).date())
    unused = json.loads(team.run("tokens", "new", "--for", "eve", "--title", "spare", "--json"))
    team.ask("eve", "GET", "/v1/accounts:me")
    file = team.server.home / "token-uses.json"
    used = team.tokens["eve"].split(".")[1]
    until(lambda: file.exists() and used in json.loads(file.read_text()))
    assert file.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        rows = {row["id"]: row for row in json.loads(team.run("tokens", "ls", "--of", "eve", "--json"))}
        assert today <= rows[used]["lastUseDate"] <= str(datetime.now(UTC).date())
        assert "lastUseDate" not in rows[unused["id"]]
        team.server.kill()
        team.server.start()
    assert "never" in team.run("tokens", "ls", "--of", "eve")


ANN = "ann@example.org"


@pytest.fixture
def mailing() -> Iterator[tuple[Team, MailReceiver]]:
    """Ann and Zoe submit jobs in the project vision of a server that sends mail."""
    with mail_receiver() as mails:
        flags = ("--smtp", f"smtp://127.0.0.1:{mails.port}", "--smtp-from", "trainshed@example.org")
        with LiveServer("--cpus", "4", "--memory", "8GiB", *flags) as server:
            team = Team(server)
            for name in (ANN, "zoe"):
                team.run("users", "add", name)
                team.run("roles", "grant", "user", name, project=VISION)
                team.tokens[name] = team.run("tokens", "new", "--for", name).strip()
            yield team, mails
            assert "Traceback" not in server.said(), server.said()


def ended(team: Team, who: str) -> str:
    """The id of a job of theirs that has ended."""
    body = {"displayName": "job", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
    answer = team.ask(who, "POST", f"/v1/projects/{VISION}/{LOCATION}/customJobs", body)
    team.server.wait(answer.json["name"])
    return answer.json["name"].rpartition("/")[2]


def test_a_user_is_told_by_mail_of_the_jobs_that_they_submitted_and_of_no_others(
    mailing: tuple[Team, MailReceiver],
):
    team, mails = mailing
    channel = ("notify", "add", "--name", "me", "--mine", "--on", "ended")
    team.run(*channel, "--mail", ANN, who=ANN, project=VISION)
    for words, sentence in (
        (("--mine", "--mail", "boss@example.org"), f"must be mail to your own account, {ANN}"),
        (("--mine", "--webhook", "http://127.0.0.1:1/"), f"must be mail to your own account, {ANN}"),
        (("--mail", ANN), "no permission notices.write"),
        (("--user", "zoe", "--mail", ANN), "no permission notices.write"),
    ):
        refused = team.run("notify", "add", "--name", "b", *words, who=ANN, project=VISION, code=1)
        assert sentence in refused, refused
    team.run("notify", "ls", "--mine", who=ANN, project=SPEECH, code=1)
    ids = [ended(team, who) for who in ("zoe", ANN)]
    [(recipient, mail)] = until(lambda: list(mails.mails))
    assert recipient == ANN and f"({ids[1]}) succeeded" in mail["Subject"]
    assert "me" in team.run("notify", "ls", "--mine", who=ANN, project=VISION)
    assert "me" not in team.run("notify", "ls", "--mine", who="zoe", project=VISION)
    team.run("notify", "rm", "me", "--mine", who="zoe", project=VISION, code=1)
    listed = json.loads(team.run("notify", "ls", "--json", project=VISION))
    assert [(item["user"], item["address"]) for item in listed] == [(ANN, ANN)]
    # An admin adds any address for anybody's jobs, under a name that others have too.
    other = ("--name", "me", "--user", "zoe", "--mail", "boss@example.org", "--on", "ended")
    team.run("notify", "add", *other, project=VISION)
    ended(team, "zoe")
    assert [to for to, _ in until(lambda: len(mails.mails) == 2 and mails.mails)] == [
        ANN,
        "boss@example.org",
    ]
    team.run("notify", "rm", "me", "--user", "zoe", project=VISION)
    team.run("notify", "test", "me", "--mine", who=ANN, project=VISION)
    team.run("notify", "rm", "me", "--mine", who=ANN, project=VISION)
    assert json.loads(team.run("notify", "ls", "--all-projects", "--json")) == []
    for name in ("a", "b", "c"):
        team.run("notify", "add", "--name", name, "--mine", "--mail", ANN, who=ANN, project=VISION)
    more = ("notify", "add", "--name", "d", "--mine", "--mail", ANN)
    assert "which is the most" in team.run(*more, who=ANN, project=VISION, code=1)
    for command in ("rm", "add"):
        team.run("users", command, ANN)
    assert json.loads(team.run("notify", "ls", "--all-projects", "--json")) == []
