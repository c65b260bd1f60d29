"""The other end of sdk/session.py: calls into the real SDK, in its own interpreter, from a test."""

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.live import PROJECT, LiveServer, bearing

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-sdk" / "bin" / "python"
SESSION = Path(__file__).parent / "sdk" / "session.py"
OWN = "(own token)"


class SdkError(Exception):
    """An exception of the SDK, told by its name and classes."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(f"{told['type']}: {told['text']}\n{told['trace']}")
        self.type: str = told["type"]
        self.classes: list[str] = told["classes"]
        self.text: str = told["text"]
        self.code: int = told.get("code", 0)
        self.details: list[Any] = told.get("details", [])

    @property
    def violations(self) -> dict[str, str]:
        rows = [row for detail in self.details for row in detail.get("fieldViolations", [])]
        return {row["field"]: row["description"] for row in rows}


class Sdk:
    def __init__(self, log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [str(PYTHON), "-P", str(SESSION)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                env={"PATH": "/usr/bin:/bin", "HOME": str(log.parent), "PYTHONPATH": str(SESSION.parent)},
                cwd=log.parent,
                text=True,
            )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.version: str = self._answer(timeout=110)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def __call__(
        self, call: str, server: LiveServer, *, token: str | None = OWN, project: str = PROJECT, **args: Any
    ) -> Any:
        """Call a function of a module in tests/conformance/sdk; SdkError is what it raised."""
        reach = {
            "url": server.url,
            "token": server.token if token == OWN else token,
            "project": project,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"call": call, "reach": reach, "args": args}) + "\n")
        self.process.stdin.flush()
        return self._answer(timeout=100)

    def _answer(self, timeout: float) -> Any:
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"the SDK did not answer in {timeout} s:\n{self.said()}") from None
        if not line:
            raise AssertionError(f"the SDK's interpreter ended:\n{self.said()}")
        told = json.loads(line)
        if "error" in told:
            raise SdkError(told["error"])
        return told["value"]

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        assert self.process.pid not in bearing(self.log.parent)
