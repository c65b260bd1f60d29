"""No command lets a terminal obey what stands in a name, a label, a message or a file of the server.

Every command of the menu is run on a terminal, against a server whose names are hostile.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.live import IMAGE, PARENT, PROJECT, LiveServer, by_id, python
from tests.studies.asked_studies import asked_study
from trainshed.cli.main import SECTIONS

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[8m\x1bPq\x1b\\n\rame\x9b2J\u202e"
# Colours, a bar that is drawn anew, and a table that is.
OWN = re.compile(r"\x1b\[(?:0|1|2|3[1-6])m|\r(?=[█░])|\x1b\[K|\x1b\[\d+A\r|\x1b\[J")
DANGEROUS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")  # in what a program printed, it may be its language

COMMANDS: dict[str, list[list[str]]] = {
    "costs": [["costs"], ["costs", "--by", "label:who"]],
    "quota": [["quota"]],
    "shares": [["shares", "ls"], ["shares", "set", "{folder}/none.toml"]],
    "notify": [["notify", "ls"], ["notify", "rm", HOSTILE]],
    "secrets": [["secrets", "ls"], ["secrets", "rm", HOSTILE]],
    "users": [["users", "ls"], ["users", "add", HOSTILE], ["users", "rm", HOSTILE]],
    "groups": [["groups", "ls"], ["groups", "set", HOSTILE, HOSTILE]],
    "roles": [["roles", "ls"], ["roles", "grant", "user", HOSTILE]],
    "tokens": [["tokens", "ls"], ["tokens", "ls", "--of", HOSTILE], ["tokens", "revoke", HOSTILE]],
    "audit": [["audit"]],
    "whoami": [["whoami"]],
    "login": [["login"], ["login", "--out"]],
    "submit": [["submit", "--dry-run", "{folder}/train.py", "--name", HOSTILE]],
    "tune": [
        ["tune", "--dry-run", "{folder}/train.py", "--param", "x=1,2", "--minimize", HOSTILE],
        ["tune", "{folder}/train.py", "--param", f"x=1{HOSTILE}"],
    ],
    "study": [
        ["study", "ls"],
        ["study", "show", "{study}"],
        ["study", "show", "{asked}"],
        ["study", "show", "{asked}", "--csv", "-"],
        ["study", "trials", "{asked}"],
        ["study", "best", "{asked}"],
        ["study", "show", "-f", "{study}"],
        ["study", "trials", "{study}"],
        ["study", "best", "{study}"],
        ["study", "add", "{study}", f"x={HOSTILE}"],
        ["study", "stop", HOSTILE],
    ],
    "apply": [["apply", "-f", "{folder}/pod.yaml", "--dry-run"]],
    "ls": [["ls"], ["ls", "--location=-"]],
    "get": [["get", "jobs"], ["get", "jobs", "-o", "yaml"], ["get", "{job}", "-o", "yaml"]],
    "show": [["show", "{job}"], ["show", "{job}", "--env"]],
    "events": [["events", "{job}"]],
    "logs": [["logs", "{job}"]],
    "top": [["top", "--once"], ["top", "{job}", "--once"]],
    "stacks": [["stacks", "{job}"]],
    "shell": [["shell", "{job}", "--", "true"]],
    "why": [["why", "{job}"]],
    "wait": [["wait", "{job}"]],
    "diff": [["diff", "{job}", "{other}"]],
    "code": [["code", "{job}", "--list"]],
    "storage": [
        ["storage", "ls", "-l", "gs://names/"],
        ["storage", "ls", "--recursive", "gs://names/**"],
        ["storage", "cp", "-r", "gs://names", "{folder}/copy"],
        ["storage", "rm", "gs://names/nothing" + HOSTILE],
    ],
    "images": [["images", "ls"]],
    "runtimes": [["runtimes", "ls"]],
    "env": [["env"]],
    "console": [["console", "{job}", "--print"]],
    "nodes": [["nodes"]],
    "queue": [["queue"]],
    "ai": [
        ["ai", "custom-jobs", "list", "--region=us-central1"],
        ["ai", "custom-jobs", "describe", "{job}", "--region=us-central1"],
        ["ai", "custom-jobs", "list", "--region=us-central1", "--format=csv(displayName)"],
        ["ai", "custom-jobs", "list", "--region=us-central1", "--format=value(displayName)"],
        ["ai", "custom-jobs", "stream-logs", "{job}", "--region=us-central1"],
    ],
    "ai-platform": [["ai-platform", "jobs", "list"], ["ai-platform", "jobs", "describe", HOSTILE]],
    "cancel": [["cancel", "{job}"]],
    "retry": [["retry", "{job}", "--detach"]],
    "delete": [["delete", "{other}", "--yes"]],
}
PRINT_NOTHING_OF_THE_SERVER = {"doctor", "kube", "up", "completion", "docker-shim", "backup", "restore"}


class World:
    def __init__(self, server: LiveServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        failing = f"raise ValueError({HOSTILE!r})"
        self.job = server.submit(
            python(failing),
            name=HOSTILE,
            labels={"team": "x"},
            spec={"baseOutputDirectory": {"outputUriPrefix": "gs://names/out"}},
        )
        self.other = server.submit(python("print(1)"), name=f"b{HOSTILE}")
        server.wait(self.job)
        server.wait(self.other)
        self.study = self._study()
        self.asked = self._asked()
        server.post("/storage/v1/b", {"name": "names"})
        for name in ("plain", HOSTILE.replace("\r", "")):
            path = f"/upload/storage/v1/b/names/o?uploadType=media&name={quote(name, safe='')}"
            assert server.request("POST", path, b"x").status == 200
        (folder / "train.py").write_text("print(1)\n")
        (folder / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n")

    def _study(self) -> str:
        pool = {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": IMAGE, "command": python("print(1)")},
        }
        spec = {
            "metrics": [{"metricId": f"m{HOSTILE}", "goal": "MAXIMIZE"}],
            "parameters": [{"parameterId": "x", "categoricalValueSpec": {"values": [f"v{HOSTILE}"]}}],
        }
        body = {
            "displayName": HOSTILE,
            "studySpec": spec,
            "maxTrialCount": 1,
            "parallelTrialCount": 1,
            "trialJobSpec": {"workerPoolSpecs": [pool]},
        }
        return str(self.server.post(f"{PARENT}/hyperparameterTuningJobs", body)["name"])

    def _asked(self) -> str:
        """A study whose every name is hostile. A parameter's has no spaces: the server refuses such."""
        name = "".join(HOSTILE.split())
        parameter = {"parameterId": name, "categoricalValueSpec": {"values": [HOSTILE, f"={HOSTILE}"]}}
        metric = {"metricId": HOSTILE, "goal": "MINIMIZE"}
        study = asked_study(self.server, f"asked {HOSTILE}", [parameter], metric)
        good, bad = study.ask(2)
        study.complete(good, 0.5)
        study.give_up(bad, HOSTILE)
        return study.name

    def on_a_terminal(self, words: list[str]) -> str:
        """Everything that the terminal got."""
        known = {"job": by_id(self.job), "other": by_id(self.other), "folder": str(self.folder)}
        known |= {"study": self.study, "asked": self.asked}
        args = [word if HOSTILE in word else word.format(**known) for word in words]
        env = {key: value for key, value in os.environ.items() if not key.startswith("TRAINSHED_")}
        env |= {"TRAINSHED_HOME": str(self.server.home), "TRAINSHED_PROJECT": PROJECT, "TERM": "xterm"}
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "trainshed.cli", *args],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=env,
        ):
            os.close(theirs)
            output = b""
            try:
                while piece := os.read(ours, 1 << 16):
                    output += piece
            except OSError:  # Linux says so at the end
                pass
        os.close(ours)
        return output.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with LiveServer() as server:
        yield World(server, tmp_path_factory.mktemp("names"))


def test_each_command_of_the_menu_is_looked_at():
    menu = {name for section in SECTIONS.values() for name in section}
    assert menu - PRINT_NOTHING_OF_THE_SERVER == COMMANDS.keys()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_command_passes_a_terminal_what_it_would_obey(world: World):
    obeyed: list[str] = []
    shown = ""
    for words in (words for group in COMMANDS.values() for words in group):
        output = world.on_a_terminal(words)
        shown += output
        assert "trainshed/cli" not in output  # no traceback of ours
        output = OWN.sub("", output)
        is_of_a_program = "logs" in words or "stream-logs" in words
        if DANGEROUS.search(output) or (TURNING.search(output) and not is_of_a_program):
            obeyed.append(f"{words!r}: {output!r}")
    assert not obeyed, "\n".join(obeyed)
    assert "n^Mame" in shown  # the names were there to be printed


def test_a_pipe_gets_names_as_they_are(world: World):
    env = {**os.environ, "TRAINSHED_HOME": str(world.server.home), "TRAINSHED_PROJECT": PROJECT}
    words = [sys.executable, "-m", "trainshed.cli", "ls"]
    output = subprocess.run(words, env=env, check=True, capture_output=True).stdout.decode()
    assert "\x1b]0;owned\x07" in output
    assert "n\rame\x9b2J\u202e" in output
