"""A job as YAML, and as commands and programs to paste: each is run for real and submits the same job."""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page

from tests.browser.page import go_to
from tests.conformance.gcloud_model import printed_environment
from tests.conformance.sdk_session import PYTHON as SDK_PYTHON
from tests.live import JOBS, LOCATION, PROJECT, LiveServer, pool, python
from trainshed.cli.job_file import load
from trainshed.console import PREFIX, version

pytestmark = pytest.mark.slow

ODD = 'it\'s "quoted" $HOME `date` \\n\nsecond line: # no comment\n\n  indented\tEND\nEND\n'
PIECES = (
    *(
        "a",
        "1",
        "true",
        "No",
        "null",
        "~",
        ":",
        " ",
        "#",
        "- ",
        "\n",
        "\t",
        "'",
        '"',
        "\\",
        "{",
        "]",
        "&",
        "*",
        "!",
    ),
    *(
        "|",
        ">",
        "%",
        "@",
        "`",
        ",",
        "?",
        "0x1",
        "1e3",
        ".5",
        ".inf",
        "2026-01-01",
        "12:30",
        "=",
        "<<",
        "é",
        "🚂",
    ),
    *(
        "\u2028",
        "\x85",
        "\x7f",
        "\x1b",
        "\r",
        "\ufeff",
        "a: b",
        "a #b",
        "y",
        "_",
        "/",
        "gs://b/o",
        "\n\n",
        "x\n y\n",
    ),
)
BODY: dict[str, Any] = {
    "displayName": "it's an <odd> job",
    "labels": {"team": "vision", "seed": "3"},
    "jobSpec": {
        "workerPoolSpecs": [
            pool(
                python("import sys; print(sys.argv)"),
                args=["--text", ODD, "", "true", "1e3"],
                env={"TEXT": ODD, "N": "007"},
            ),
            pool(["sh", "-c", "true"], replicas=2, machine="n1-standard-2"),
        ],
        "scheduling": {"timeout": "3600s", "disableRetries": True},
        "baseOutputDirectory": {"outputUriPrefix": "gs://results/odd"},
    },
}
OWN = {"priority": 3, "holdOnFailure": "60s"}  # fields that Google's SDK does not know


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "512GiB") as server:
        yield server


@pytest.fixture(scope="module")
def environment(server: LiveServer) -> dict[str, str]:
    printed = printed_environment(server)
    return {**printed, "PATH": f"{Path(sys.executable).parent}:{printed['PATH']}"}


def call(page: Page, module: str, name: str, argument: object) -> Any:
    """What a function of a module of the console returns."""
    script = f"async (argument) => (await import('{PREFIX}/{version()}/lib/{module}')).{name}(argument)"
    return page.evaluate(script, argument)


def copied(page: Page, name: str, body: Any) -> Any:
    return call(page, "copy-as.js", name, {"body": body, "project": PROJECT, "location": LOCATION})


def pasted(text: str, environment: dict[str, str], *command: str) -> None:
    done = subprocess.run(
        [*command] or ["sh"],
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def newest(server: LiveServer) -> Any:
    return server.get(JOBS, pageSize=1)["customJobs"][0]


def test_yaml_means_the_same_to_every_reader(console: Page):
    chance = random.Random(7)

    def text() -> str:
        return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 6)))

    def value(depth: int = 0) -> Any:
        kind = chance.random()
        if depth < 4 and kind < 0.25:
            return {text(): value(depth + 1) for _ in range(chance.randint(0, 3))}
        if depth < 4 and kind < 0.5:
            return [value(depth + 1) for _ in range(chance.randint(0, 3))]
        return chance.choice([text(), text(), text(), chance.randint(-5, 10**6), 1.5, True, None])

    values = [{"value": value()} for _ in range(1500)] + [BODY]
    module = f"{PREFIX}/{version()}/lib/yaml.js"
    script = f"async (all) => all.map((await import('{module}')).yaml)"
    go_to(console, "/console/jobs")
    for expected, printed in zip(values, console.evaluate(script, values), strict=True):
        assert yaml.safe_load(printed) == expected, printed
        assert load("job.yaml", printed, "")[1] == expected, printed


@pytest.mark.parametrize("name", ["asTrainshed", "asCurl"])
def test_a_pasted_command_submits_the_same_job(
    console: Page, server: LiveServer, environment: dict[str, str], name: str
):
    body = {**BODY, "jobSpec": {**BODY["jobSpec"], "scheduling": {**BODY["jobSpec"]["scheduling"], **OWN}}}
    expected = server.job(server.post(JOBS, body)["name"])
    go_to(console, "/console/jobs")
    pasted(copied(console, name, body)["text"], environment)
    assert_same(newest(server), expected)


@pytest.mark.needs_gcloud
@pytest.mark.skipif(shutil.which("gcloud") is None, reason="the Google Cloud CLI is not on PATH")
@pytest.mark.timeout(300)
def test_a_pasted_gcloud_command_submits_the_same_job(
    console: Page, server: LiveServer, environment: dict[str, str]
):
    body = {**BODY, "jobSpec": {**BODY["jobSpec"], "scheduling": {**BODY["jobSpec"]["scheduling"], **OWN}}}
    expected = server.job(server.post(JOBS, body)["name"])
    go_to(console, "/console/jobs")
    pasted(copied(console, "asGcloud", body)["text"], environment)
    assert_same(newest(server), expected)


@pytest.mark.needs_sdk
@pytest.mark.skipif(not SDK_PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk")
@pytest.mark.timeout(300)
def test_a_pasted_program_for_google_s_sdk_submits_the_same_job_and_says_what_it_leaves_out(
    console: Page, server: LiveServer, environment: dict[str, str]
):
    expected = server.job(server.post(JOBS, BODY)["name"])
    go_to(console, "/console/jobs")
    program = copied(console, "asPython", BODY)
    assert program["notes"] == []
    pasted(program["text"], environment, str(SDK_PYTHON), "-")
    assert_same(newest(server), expected)
    body = {**BODY, "jobSpec": {**BODY["jobSpec"], "scheduling": OWN}}
    [note] = copied(console, "asPython", body)["notes"]
    assert "scheduling.priority, scheduling.holdOnFailure" in note


def test_secrets_are_said_to_be_missing_and_curl_takes_them_from_the_first_job(
    console: Page, server: LiveServer, environment: dict[str, str]
):
    secret = "import os; print(os.environ['HF_TOKEN'] == 'hush')"
    first = server.submit(pools=[pool(python(secret), env={"HF_TOKEN": "hush"})], name="secretive")
    job = server.wait(first)
    body = {"displayName": "again", "jobSpec": job["jobSpec"]}
    submission = {"body": body, "project": PROJECT, "location": LOCATION, "id": first.rsplit("/", 1)[1]}
    go_to(console, "/console/jobs")
    assert "replace each" in call(console, "copy-as.js", "asGcloud", submission)["notes"][0]
    pasted(call(console, "copy-as.js", "asCurl", submission)["text"], environment)
    again = newest(server)["name"]
    server.wait(again)
    assert [line["text"] for line in server.lines(again)] == ["True"]


def assert_same(job: Any, expected: Any) -> None:
    assert job["name"] != expected["name"]
    for field in ("displayName", "labels", "jobSpec"):
        assert job[field] == expected[field]
