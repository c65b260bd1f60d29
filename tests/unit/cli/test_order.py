"""From what a person typed, and where they stood, to the job the server is asked for."""

import os
from pathlib import Path
from typing import Any

import pytest

from trainshed.cli.order import SubmittedProgram, accelerators
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.trouble import EarlyError
from trainshed.data.catalogue import load_catalogue


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    for folder in ("src/trainer", ".git"):
        (root / folder).mkdir(parents=True)
    for name in ("train.py", "src/go.py", "src/trainer/__main__.py", "plain.sh", "notes.txt"):
        (root / name).write_text("")
    (root / "run").write_text("")
    (root / "run").chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return root


def program(**said: Any) -> SubmittedProgram:
    return SubmittedProgram(SubmitWords(said))


def container(**said: Any) -> Any:
    return program(**said).body(SubmitWords(said), "c0de")["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]


@pytest.mark.parametrize(
    ("target", "command", "name"),
    [
        ("train.py", ["python", "train.py"], "train"),
        ("./src/go.py", ["python", "src/go.py"], "go"),
        ("src/trainer", ["python", "src/trainer"], "trainer"),
        ("run", ["./run"], "run"),
        ("plain.sh", ["sh", "plain.sh"], "plain"),
    ],
)
def test_a_program_keeps_its_place_and_starts_by_its_kind(
    project: Path, target: str, command: list[str], name: str
) -> None:
    found = program(target=target)
    assert (found.root, found.start, found.name) == (str(project), ".", name)
    assert container(target=target)["command"] == command


def test_a_job_starts_where_the_person_stands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "src")
    assert program(target="go.py").root == str(project)
    for said, command in (
        ({"target": "go.py"}, ["python", "go.py"]),
        ({"target": "../train.py"}, ["python", "../train.py"]),
        ({"module": "trainer"}, ["python", "-m", "trainer"]),
    ):
        spec = program(**said).body(SubmitWords(said), "c0de")["jobSpec"]
        assert spec["workingDirectory"] == "src"
        assert spec["workerPoolSpecs"][0]["containerSpec"]["command"] == command


def test_from_outside_a_job_starts_at_the_top(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    assert program(target="project/src/go.py").root == str(project)
    assert container(target="project/src/go.py")["command"] == ["python", "src/go.py"]


def test_outside_of_git_it_is_the_folder_one_stands_in_or_the_scripts_own(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").rmdir()
    assert program(target="src/go.py").root == str(project)
    monkeypatch.chdir(project / "src" / "trainer")
    assert program(target="../go.py").root == str(project / "src")
    assert program(target="../go.py").start == "trainer"
    assert program(module="a.b").root == str(project / "src" / "trainer")


def test_a_home_is_not_packed_by_accident(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").rmdir()
    monkeypatch.setenv("HOME", str(project))
    with pytest.raises(EarlyError, match=r"all of .* would be packed"):
        program(target="train.py")
    assert program(target="train.py", folder=".").root == str(project)


def test_a_named_folder_is_packed_and_the_script_may_be_named_from_within(project: Path) -> None:
    found = program(target="src/go.py", folder="src")
    assert (found.root, found.start, found.command) == (str(project / "src"), ".", ["python", "go.py"])
    assert program(target="go.py", folder="src").command == ["python", "go.py"]
    for wrong in ({"target": "train.py", "folder": "src"}, {"target": "train.py", "folder": "none"}):
        with pytest.raises(EarlyError) as told:
            program(**wrong)
        assert told.value.code == 2


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"target": "trian.py"}, "there is no trian.py"),
        ({"target": "notes.txt"}, "neither a Python script"),
        ({"target": "src"}, "no __main__.py"),
        ({"target": "train.py", "module": "m"}, "not both"),
        ({}, "say what to run"),
    ],
)
def test_what_cannot_run_is_said_with_what_would_help(project: Path, said: Any, sentence: str) -> None:
    with pytest.raises(EarlyError, match=sentence):
        program(**said)


def test_the_first_replica_is_pool_0_and_the_others_pool_1(project: Path) -> None:
    said: Any = {
        "target": "train.py",
        "arguments": ("--epochs", "5"),
        "replicas": 3,
        "machine": "n1-standard-8",
        "gpu": "nvidia-tesla-t4:2",
        "image": "trainshed/pytorch",
        "env": ("A=1=2", "HERE"),
        "labels": ("team=vision",),
        "timeout": "600s",
        "priority": -1,
        "name": "digits",
    }
    os.environ["HERE"] = "there"
    try:
        body = program(**said).body(SubmitWords(said), "c0de")
    finally:
        del os.environ["HERE"]
    one, others = body["jobSpec"].pop("workerPoolSpecs")
    assert body == {
        "displayName": "digits",
        "labels": {"team": "vision"},
        "jobSpec": {"code": "c0de", "scheduling": {"timeout": "600s", "priority": -1}},
    }
    assert (one.pop("replicaCount"), others.pop("replicaCount")) == (1, 2)
    assert one == others
    assert one == {
        "machineSpec": {
            "machineType": "n1-standard-8",
            "acceleratorType": "NVIDIA_TESLA_T4",
            "acceleratorCount": 2,
        },
        "containerSpec": {
            "imageUri": "trainshed/pytorch",
            "command": ["python", "train.py"],
            "args": ["--epochs", "5"],
            "env": [{"name": "A", "value": "1=2"}, {"name": "HERE", "value": "there"}],
        },
    }


@pytest.mark.parametrize(
    "said",
    [
        {"gpu": ":2"},
        {"gpu": "T4:0"},
        {"gpu": "T4:x"},
        {"env": ("=1",)},
        {"env": ("GONE",)},
        {"labels": ("x",)},
    ],
)
def test_a_wrong_value_is_a_wrong_command_line(project: Path, said: Any) -> None:
    with pytest.raises(EarlyError) as told:
        container(target="train.py", **said)
    assert told.value.code == 2


def test_requirements_are_sent_line_by_line_with_the_files_they_name(project: Path) -> None:
    (project / "more").mkdir()
    (project / "r.txt").write_text(
        "# ours\nnumpy>=2 \\\n  --no-binary x\n\n-r more/m.txt\n--requirement=more/n.txt\n"
    )
    (project / "more" / "m.txt").write_text("torch # heavy\n-r n.txt\n")
    (project / "more" / "n.txt").write_text("a @ file:///x#egg=a\n")
    said = {"target": "train.py", "requirements": "r.txt"}
    lines = program(**said).body(SubmitWords(said), "")["jobSpec"]["requirements"]
    assert lines == ["numpy>=2   --no-binary x", "torch", "a @ file:///x#egg=a", "a @ file:///x#egg=a"]
    (project / "more" / "n.txt").write_text("-r m.txt\n")
    with pytest.raises(EarlyError, match="names itself"):
        program(**said).body(SubmitWords(said), "")
    with pytest.raises(EarlyError, match=r"cannot read none\.txt"):
        program(**said).body(SubmitWords({**said, "requirements": "none.txt"}), "")


def test_all_that_is_wrong_with_the_options_is_told_at_once(project: Path) -> None:
    said: Any = {"target": "train.py", "gpu": ":", "env": ("NO_SUCH_VARIABLE",), "labels": ("z",)}
    with pytest.raises(EarlyError) as told:
        SubmittedProgram(SubmitWords(said)).check(SubmitWords(said))
    assert told.value.code == 2
    assert [line.partition(" ")[0] for line in told.value.details] == ["--gpu", "--env", "--label"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("H200", ("NVIDIA_H200_141GB", 1)),
        ("A100:2", ("NVIDIA_TESLA_A100", 2)),
        ("a100-80gb", ("NVIDIA_A100_80GB", 1)),
        ("h100:8", ("NVIDIA_H100_80GB", 8)),
        ("mega", ("NVIDIA_H100_MEGA_80GB", 1)),
        ("t4", ("NVIDIA_TESLA_T4", 1)),
        ("tesla-v100", ("NVIDIA_TESLA_V100", 1)),
        ("rtx pro 6000", ("NVIDIA_RTX_PRO_6000", 1)),
        ("GB200", ("NVIDIA_GB200", 1)),
        ("nvidia_tesla_p4:4", ("NVIDIA_TESLA_P4", 4)),
        ("S9000", ("S9000", 1)),
    ],
)
def test_a_gpu_may_be_called_by_an_unambiguous_part_of_its_name(
    project: Path, said: str, meant: tuple[str, int]
) -> None:
    body = program(target="train.py", gpu=said).body(SubmitWords({"target": "train.py", "gpu": said}), "")
    machine = body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
    assert (machine["acceleratorType"], machine["acceleratorCount"]) == meant


def test_a_part_of_several_gpus_is_refused_with_all_of_them(project: Path) -> None:
    with pytest.raises(EarlyError, match="NVIDIA_A100_80GB, NVIDIA_H100_80GB, NVIDIA_H100_MEGA_80GB") as told:
        container(target="train.py", gpu="80gb")
    assert told.value.code == 2


def test_the_accelerators_known_here_are_those_of_the_server() -> None:
    assert accelerators() == list(load_catalogue().accelerators)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H200", "NVIDIA_H200_141GB"),
        ("Tesla T4", "NVIDIA_TESLA_T4"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA_TESLA_A100"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA_A100_80GB"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA_H100_80GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA_RTX_PRO_6000"),
        ("NVIDIA GeForce GTX 1080", ""),
        ("", ""),
    ],
)
def test_a_device_is_known_by_the_name_its_driver_tells(device: str, name: str) -> None:
    assert load_catalogue().accelerator_of(device) == name


def test_a_requirements_file_that_is_not_used_is_named(project: Path) -> None:
    (project / "requirements.txt").write_text("numpy")
    assert program(target="train.py").unused_requirements(SubmitWords({})) == "requirements.txt"
    assert program(target="train.py").unused_requirements(SubmitWords({"requirements": "r.txt"})) == ""
