"""`trainshed ai-platform local train`: a module run on this machine, alone or with a chief and others."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal

LOCAL = ("ai-platform", "local", "train", "--module-name=trainer.task")
TELL = """import json, os, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
name = f"{task.get('type', 'alone')}-{task.get('index', 0)}"
with open(name + ".json", "w") as file:
    json.dump([config, sys.argv[1:], os.getpid()], file)
others = sum(len(hosts) for role, hosts in config["cluster"].items())
while name in ("chief-0",) and len([f for f in os.listdir(".") if f.endswith(".json")]) < others:
    time.sleep(0.02)
if task.get("type", "chief") != "chief":
    time.sleep(600)
sys.exit(5)
"""


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "task.py").write_text(TELL)
    return package


def told(folder: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_a_module_runs_here_alone_and_its_exit_code_is_the_commands(
    terminal: Terminal, trainer: Path
) -> None:
    done = terminal(*LOCAL, f"--package-path={trainer}", "--job-dir=/tmp/out", "--", "--epochs", "1")
    assert done.code == 5, done.err
    [(config, args, _)] = told(trainer.parent).values()
    assert args == ["--epochs", "1", "--job-dir", "/tmp/out"]
    assert config == {
        "job": {"job_name": "trainer.task", "args": args},
        "task": {},
        "cluster": {},
        "environment": "cloud",
    }
    assert not terminal.script.asked


def test_a_distributed_run_has_every_role_and_none_outlives_the_chief(
    terminal: Terminal, trainer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trainer.parent)  # where the module's own package is found
    done = terminal(
        *LOCAL, "--distributed", "--worker-count=2", "--parameter-server-count=1", "--start-port=2000"
    )
    assert done.code == 5, done.err
    found = told(trainer.parent)
    assert sorted(found) == ["chief-0", "ps-0", "worker-0", "worker-1"]
    cluster = found["ps-0"][0]["cluster"]
    hosts = [host for one in cluster.values() for host in one]
    assert sorted(hosts) == [f"localhost:{port}" for port in range(2000, 2004)]
    for _, _, pid in found.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_cannot_be_run_here_is_told(terminal: Terminal, trainer: Path) -> None:
    assert terminal("ai-platform", "local", "train").code == 2
    missing = terminal(*LOCAL, "--package-path=none")
    assert missing.code == 1
    assert missing.err.startswith("ERROR: (trainshed.ai-platform.local.train) Source directory [none]")
