"""The steps of something that takes long: each says at least every ten seconds that it goes on.

What the programs print goes into a log; where one fails, its last lines are shown.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

PAUSE = 10.0  # seconds


class Steps:
    def __init__(self, log: Path) -> None:
        self._log = log
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        print(f"cluster: {time.monotonic() - self._begun:4.0f} s: {text}", flush=True)

    def run(
        self, what: str, words: list[str], env: Mapping[str, str] = os.environ, cwd: Path | None = None
    ) -> None:
        self.say(what)
        with self._log.open("ab") as log:
            log.write(f"--- {' '.join(words)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        try:
            while not _ends(process):
                self.say(f"{what}: {self._last_line()}")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # compilers too
                process.wait()
        if process.returncode != 0:
            last = self._log.read_text(errors="replace").splitlines()[-20:]
            raise SystemExit("\n".join([*last, f"cluster: {what} failed; all of it is in {self._log}"]))

    def _last_line(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - 1000))
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip()[:80] for line in reversed(lines) if line.strip()), "")


def _ends(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(PAUSE)
    except subprocess.TimeoutExpired:
        return False
    return True
