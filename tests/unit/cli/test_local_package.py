"""local-package-path: a folder of this machine, as gcloud's autopackaging takes it."""

from pathlib import Path

import pytest

from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.ai.local_package import local_package
from trainshed.cli.ai.pools import PoolProgram, pools
from trainshed.cli.failure import CommandFailed

SETUP = """from setuptools import setup
setup(name="trainer", version="1", packages=["trainer"], install_requires=["first", "second>=2"],
      extras_require={"more": ["third"]})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trainer").mkdir()
    for name in ("trainer/__init__.py", "trainer/task.py", "run.sh"):
        (tmp_path / name).write_text("")
    return tmp_path


def spec(folder: Path, *more: str, image: str = "gcr.io/p/base:1") -> str:
    keys = ("machine-type=n1-standard-4", f"local-package-path={folder}", f"executor-image-uri={image}")
    return ",".join((*keys, *more))


@pytest.mark.parametrize(
    ("key", "script", "command"),
    [
        ("script=trainer/task.py", "trainer/task.py", ("python", "trainer/task.py")),
        ("script=./run.sh", "run.sh", ("/bin/bash", "run.sh")),
        ("python-module=trainer.task", "trainer/task.py", ("python", "-m", "trainer.task")),
    ],
)
def test_what_runs_is_said_as_in_gclouds_images(
    folder: Path, key: str, script: str, command: tuple[str, ...]
) -> None:
    found = local_package([spec(folder, key)])
    assert found is not None
    assert (found.root, found.script, found.command) == (str(folder), script, command)
    assert (found.image, found.requirements, found.notes) == ("gcr.io/p/base:1", (), ())


def test_all_pools_run_the_folder_in_the_image_below_each_on_its_machine(folder: Path) -> None:
    texts = [
        spec(folder, "script=run.sh", "replica-count=1"),
        "machine-type=n1-highmem-8,replica-count=3",
        "",
    ]
    made = pools(texts, PoolProgram(args=["--epochs=3"], local=local_package(texts)))
    program = {"imageUri": "gcr.io/p/base:1", "command": ["/bin/bash", "run.sh"], "args": ["--epochs=3"]}
    assert made == [
        {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": program},
        {"machineSpec": {"machineType": "n1-highmem-8"}, "replicaCount": 3, "containerSpec": program},
        {},
    ]


def test_what_the_folder_and_the_flag_say_is_needed_is_put_together(folder: Path) -> None:
    (folder / "requirements.txt").write_text("numpy==2.0  # arrays\n\nfirst\n")
    (folder / "setup.py").write_text(SETUP)
    found = local_package([spec(folder, "script=run.sh", "requirements=tqdm;rich>=13")])
    assert found is not None
    assert found.requirements == ("numpy==2.0", "first", "second>=2", "tqdm", "rich>=13")
    assert sorted(path.name for path in folder.iterdir()) == [
        "requirements.txt",
        "run.sh",
        "setup.py",
        "trainer",
    ]


def test_an_image_that_is_not_built_is_said_to_be_none(folder: Path) -> None:
    found = local_package([spec(folder, "script=run.sh", "output-image-uri=gcr.io/p/out:1")])
    assert found is not None and "gcr.io/p/out:1 is not used" in found.notes[0]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["script=absent.py"], r"File \[absent.py\] is not found"),
        (["script=../task.py"], r"File \[../task.py\] is not found"),
        (["python-module=trainer.absent"], "there is no trainer/absent.py"),
        (["script=run.sh", "extra-dirs=trainer;data"], r"Directory \[data\] is not found"),
    ],
)
def test_what_is_not_in_the_folder_is_named(folder: Path, more: list[str], why: str) -> None:
    with pytest.raises(CommandFailed, match=why):
        local_package([spec(folder, *more)])


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["machine-type=m,executor-image-uri=i,script=run.sh"], r"\[script\] goes with local-package-path"),
        (["machine-type=m,local-package-path=.,script=a.py"], r"\[executor-image-uri\] is required"),
        (["machine-type=m,local-package-path=.,executor-image-uri=i"], "exactly one of the keys"),
        (
            ["machine-type=m,local-package-path=.,executor-image-uri=i,script=a,python-module=b"],
            "exactly one of the keys",
        ),
        (["machine-type=m,container-image-uri=i", "machine-type=m,local-package-path=."], "first one alone"),
        (
            ["machine-type=m,local-package-path=.,executor-image-uri=i,script=a,extra-packages=b.tar.gz"],
            "extra-packages of this machine are not sent",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_refused(texts: list[str], why: str) -> None:
    with pytest.raises(Misspelt, match=f"argument --worker-pool-spec: .*{why}"):
        local_package(texts)


def test_another_pool_with_a_program_of_its_own_is_refused(folder: Path) -> None:
    texts = [spec(folder, "script=run.sh"), "machine-type=m,container-image-uri=other"]
    with pytest.raises(Misspelt, match=r"\[container-image-uri\] is not for this one"):
        pools(texts, PoolProgram(local=local_package(texts)))


def test_a_job_without_a_folder_is_left_alone() -> None:
    assert local_package(["machine-type=m,container-image-uri=i", ""]) is None
    assert local_package([]) is None
