"""A shell in a folder of its own, in which `trainshed` is ours and talks to a live server."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.live import PATIENCE, LiveServer


@dataclass(frozen=True)
class Shell:
    server: LiveServer
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        # What the installed `trainshed` does, with the interpreter and the sources these tests run with.
        binary = self.folder / "bin" / "trainshed"
        binary.parent.mkdir(exist_ok=True)
        path = json.dumps([entry for entry in sys.path if entry])
        start = f"import sys; sys.path[:] = {path}; from trainshed.cli.main import main; main()"
        (binary.parent / "start.py").write_text(start)
        binary.write_text(f'#!/bin/sh\nexec {sys.executable} {binary.parent / "start.py"} "$@"\n')
        binary.chmod(0o755)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "TRAINSHED_HOME": str(self.server.home),
            **self.variables,
        }

    def __call__(self, script: str, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
