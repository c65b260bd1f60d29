"""Texts that no program, variable, file or header can hold are refused with their field, in each grammar."""

import json
from collections.abc import Callable

import pytest

from tests.live import JOBS, PARENT, LiveServer, pool, python
from trainshed.wire.training_pipeline import CUSTOM_TASK

Grammar = Callable[..., tuple[str, object]]  # the path and body of a request, of a variable and an argument
NUL, HALF, LINES = "a\0b", "a\ud800b", "a\nb"
IN_NAMES = {
    "NUL": NUL,
    "half a pair": HALF,
    "a line end": LINES,
    "an equals sign": "a=b",
    "an escape": "a\x1bb",
}
IN_VALUES = {"NUL": NUL, "half a pair": HALF}


def refused(server: LiveServer, path: str, body: object) -> set[str]:
    """The fields that are refused."""
    answer = server.request("POST", path, json.dumps(body).encode())
    assert answer.status == 400, answer.body
    assert answer.violations and all(answer.violations.values())
    return set(answer.violations)


def a_pool(name: str, value: str, word: str = "x") -> dict[str, object]:
    return pool(python("1"), env={name: value}, args=[word])


def a_custom_job(*texts: str) -> tuple[str, object]:
    return JOBS, {"displayName": "x", "jobSpec": {"workerPoolSpecs": [a_pool(*texts)]}}


def a_pipeline(*texts: str) -> tuple[str, object]:
    inputs = {"workerPoolSpecs": [a_pool(*texts)]}
    return f"{PARENT}/trainingPipelines", {
        "displayName": "x",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": inputs,
    }


def a_manifest(name: str, value: str, word: str = "x") -> tuple[str, object]:
    container = {
        "name": "c",
        "image": "trainshed/python:3",
        "env": [{"name": name, "value": value}],
        "args": [word],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    return f"{PARENT}/manifests:apply", pod


GRAMMARS = pytest.mark.parametrize("grammar", [a_custom_job, a_pipeline, a_manifest])


@GRAMMARS
@pytest.mark.parametrize("text", IN_NAMES.values(), ids=IN_NAMES)
def test_a_variable_s_name_is_refused_with_its_field(server: LiveServer, grammar: Grammar, text: str):
    (field,) = refused(server, *grammar(text, "1"))
    assert field.endswith("env[0].name"), field


@GRAMMARS
@pytest.mark.parametrize("text", IN_VALUES.values(), ids=IN_VALUES)
def test_a_variable_s_value_is_refused_with_its_field(server: LiveServer, grammar: Grammar, text: str):
    (field,) = refused(server, *grammar("A", text))
    assert field.endswith("env[0].value"), field


@GRAMMARS
@pytest.mark.parametrize("text", IN_VALUES.values(), ids=IN_VALUES)
def test_an_argument_is_refused_with_its_field(server: LiveServer, grammar: Grammar, text: str):
    (field,) = refused(server, *grammar("A", "1", text))
    assert field.endswith("args[0]"), field


@pytest.mark.parametrize("text", IN_VALUES.values(), ids=IN_VALUES)
def test_an_argument_of_ai_platform_is_refused_with_its_field(server: LiveServer, text: str):
    job = {"jobId": "x", "trainingInput": {"scaleTier": "BASIC", "region": "us-central1", "args": [text]}}
    assert any(field.endswith("args[0]") for field in refused(server, "/v1/projects/local/jobs", job))


def test_line_ends_in_values_and_arguments_reach_the_program(server: LiveServer):
    name = server.submit(pools=[pool(python("import os; print(repr(os.environ['A']))"), env={"A": LINES})])
    server.wait(name)
    assert [line["text"] for line in server.lines(name)] == ["'a\\nb'"]


@pytest.mark.parametrize("key", ["a=b", "a b", "a:b", "ключ"])
def test_metadata_that_no_header_can_hold_stays_in_the_object_s_json(server: LiveServer, key: str):
    server.request("POST", "/storage/v1/b", {"name": "headers"})
    server.request("POST", "/upload/storage/v1/b/headers/o?uploadType=media&name=x", b"bytes")
    patched = server.request("PATCH", "/storage/v1/b/headers/o/x", {"metadata": {key: "value"}})
    assert patched.status == 200 and patched.json["metadata"][key] == "value"
    assert server.request("GET", "/storage/v1/b/headers/o/x?alt=media").body == b"bytes"


@pytest.mark.parametrize("text", IN_VALUES.values(), ids=IN_VALUES)
@pytest.mark.parametrize("field", ["contentType", "contentDisposition", "cacheControl", "metadata"])
def test_an_object_s_attribute_is_refused_with_its_field(server: LiveServer, field: str, text: str):
    server.request("POST", "/storage/v1/b", {"name": "headers"})
    server.request("POST", "/upload/storage/v1/b/headers/o?uploadType=media&name=y", b"bytes")
    body = {field: {"k": text} if field == "metadata" else text}
    answer = server.request("PATCH", "/storage/v1/b/headers/o/y", json.dumps(body).encode())
    assert answer.status == 400 and field in answer.error["message"]


@pytest.mark.parametrize(
    ("verb", "path", "field"),
    [
        ("POST", "/v1/projects/p1/locations/a%00b/customJobs", "location"),
        ("POST", "/v1/projects/a%00b/jobs", "project"),
        ("GET", f"{JOBS}/a%00b", "job"),
        ("GET", f"{JOBS}?filter=displayName%3D%22%00%22", "filter"),
    ],
)
def test_nul_in_an_address_is_refused_with_its_field(server: LiveServer, verb: str, path: str, field: str):
    body = json.dumps(a_custom_job("A", "1")[1]).encode() if verb == "POST" else None
    answer = server.request(verb, path, body)
    assert (answer.status, list(answer.violations)) == (400, [field]), answer.body
