"""What the process backend would start, as plain data."""

from dataclasses import replace
from pathlib import Path

import pytest

from trainshed.backends.process.render import ProcessFrame, images, refuse, render
from trainshed.core.jobs.launch import Launch
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.queue.fleet import Placement

FRAME = ProcessFrame(
    jobs=Path("/home/run/jobs"),
    tools=Path("/home/run/bin"),
    python="/venv/bin/python",
    version="3.11",
    environ={"PATH": "/usr/bin", "HOME": "/root", "LC_ALL": "C", "SECRET": "x", "TMPDIR": "/else"},
)
LAUNCH = Launch(
    key=RunKey(ReplicaName("7", 1, 2, 3), 4),
    image="trainshed/python:3",
    command=(),
    args=("train.py", "--fast"),
    placement=Placement(pool=2, index=3, node="local", host="127.0.0.1", cpus=1, memory=1),
)


def test_a_secret_that_is_a_file_is_in_the_folder_of_its_run_and_its_path_in_the_variable():
    rendered = render(replace(LAUNCH, env={"KEY": "secret-file://key"}, secret_files={"key": "qqq"}), FRAME)
    assert rendered.env["KEY"] == f"{rendered.run}/secrets/key"
    assert rendered.env["TRAINSHED_SECRETS"] == f"{rendered.run}/secrets"
    assert "qqq" not in str(rendered)


def test_a_file_of_the_run_has_the_names_of_secrets_and_not_their_values():
    rendered = render(replace(LAUNCH, env={"HF_TOKEN": "qqq"}, secrets=frozenset({"HF_TOKEN"})), FRAME)
    written = rendered.plain()
    assert rendered.env["HF_TOKEN"] == "qqq"
    assert written["secrets"] == ["HF_TOKEN"]
    assert "qqq" not in str(written)


def test_a_launch_is_rendered_whole():
    assert render(LAUNCH, FRAME).plain() == {
        "argv": ["/venv/bin/python", "train.py", "--fast"],
        "env": {
            "PATH": "/venv/bin:/home/run/bin:/usr/bin",
            "HOME": "/root",
            "LC_ALL": "C",
            "TMPDIR": "/home/run/jobs/7/1/2-3/tmp",
            "PYTHONUNBUFFERED": "1",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": "",
            "TRAINSHED_RUN": "7.1.2.3.4",
            "TRAINSHED_RUN_DIR": "/home/run/jobs/7/1/2-3/4",
        },
        "cwd": "/home/run/jobs/7/1/2-3/work",
        "stdin": "/dev/null",
    }


@pytest.mark.parametrize(
    ("command", "module", "argv"),
    [
        ((), "", ("/venv/bin/python", "a")),
        ((), "pkg.task", ("/venv/bin/python", "-m", "pkg.task", "a")),
        (("sh", "-c"), "", ("sh", "-c", "a")),
        (("python", "-u"), "", ("/venv/bin/python", "-u", "a")),
        (("python3",), "ignored", ("/venv/bin/python", "a")),
    ],
)
def test_the_command_replaces_the_entry_point(command: tuple[str, ...], module: str, argv: tuple[str, ...]):
    assert render(replace(LAUNCH, command=command, module=module, args=("a",)), FRAME).argv == argv


def test_a_path_of_the_specs_own_decides_which_python_runs():
    launch = replace(LAUNCH, command=("python",), env={"PATH": "/opt/bin"})
    rendered = render(launch, FRAME)
    assert rendered.argv[0] == "python"
    assert rendered.env["PATH"] == "/opt/bin"


def test_a_program_is_told_where_to_report():
    launch = replace(LAUNCH, env={"A": "1", "TRAINSHED_REPORT": "elsewhere"})
    assert render(launch, FRAME, "/metrics/7").env["TRAINSHED_REPORT"] == "/metrics/7"
    assert render(launch, FRAME).env["TRAINSHED_REPORT"] == "elsewhere"


def test_hypertune_is_told_where_to_report_unless_the_job_says_it():
    variable = "CLOUD_ML_HP_METRIC_FILE"
    assert render(LAUNCH, FRAME, "/metrics/7").env[variable] == "/metrics/7.hypertune"
    assert render(replace(LAUNCH, env={variable: "mine"}), FRAME, "/metrics/7").env[variable] == "mine"
    assert variable not in render(LAUNCH, FRAME).env


def test_the_specs_environment_wins_but_not_over_the_mark():
    env = {"PYTHONUNBUFFERED": "", "CUDA_VISIBLE_DEVICES": "5", "TRAINSHED_RUN_DIR": "mine"}
    rendered = render(replace(LAUNCH, env=env), FRAME)
    assert rendered.env["PYTHONUNBUFFERED"] == ""
    assert rendered.env["CUDA_VISIBLE_DEVICES"] == "5"
    assert rendered.env["TRAINSHED_RUN_DIR"] == rendered.run


def test_placed_gpus_are_the_visible_ones():
    launch = replace(LAUNCH, placement=replace(LAUNCH.placement, gpus=("2", "3")))
    assert render(launch, FRAME).env["CUDA_VISIBLE_DEVICES"] == "2,3"


def test_a_tmpdir_too_long_for_sockets_is_not_set():
    assert "TMPDIR" not in render(LAUNCH, replace(FRAME, jobs=Path("/" + "x" * 60))).env


def test_the_plain_interpreter_is_never_refused():
    assert [refuse(image, "3.11") for image in images("3.11")] == [None] * 4


@pytest.mark.parametrize("image", ["example/x:1", "trainshed/python:2", "trainshed/pythonic", ""])
def test_a_refusal_names_the_image_and_what_runs(image: str):
    sentence = refuse(image, "3.11")
    assert sentence is not None
    assert f"'{image}'" in sentence
    assert "trainshed/python:3" in sentence
