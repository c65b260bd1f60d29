"""A real Chromium for tests, driven over W3C WebDriver by chromedriver, with the standard library only.

    with Browser() as page:
        page.go(url)
        page.type("#field", "words")
        page.until(lambda: "done" in page.text("#state"))

Nothing is fetched from anywhere but the server under test. `why_not` says how to get the programs.
"""

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.live import PATIENCE

HOW_TO_GET_IT = "get it on Debian or Ubuntu, as root, with: scripts/containers-env"
FLAGS = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--window-size=1000,640"),
)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER = "\ue007"
CONTROL = "\ue009"


def why_not() -> str | None:
    lacking = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    return f"not here: {', '.join(lacking)}; {HOW_TO_GET_IT}" if lacking else None


class Browser:
    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="ts-chromium-")
        self._driver: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._session = ""

    def __enter__(self) -> "Browser":
        log = Path(self._profile) / "driver.log"
        with log.open("wb") as out:
            self._driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        try:
            self.until(lambda: "successfully on port" in log.read_text())
            self._port = int(log.read_text().split("successfully on port ")[1].split(".")[0])
            options = {
                "binary": shutil.which("chromium"),
                "args": [
                    *FLAGS,
                    f"--user-data-dir={self._profile}/profile",
                    *(["--no-sandbox"] if os.geteuid() == 0 else []),
                ],
            }
            wish = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            self._session = self._ask("POST", "", {"capabilities": {"alwaysMatch": wish}})["sessionId"]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session:
            with contextlib.suppress(OSError, AssertionError):
                self._ask("DELETE", "")
        if self._driver is not None:
            self._driver.terminate()
            self._driver.wait(PATIENCE)
        shutil.rmtree(self._profile, ignore_errors=True)

    def go(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def type(self, selector: str, words: str) -> None:
        """Once it takes keys: what a terminal is typed into has no size before it is first drawn."""
        self.until(lambda: self._takes(self._find(selector), words))

    def _takes(self, element: str, words: str) -> bool:
        try:
            self._ask("POST", f"/element/{element}/value", {"text": words})
        except AssertionError as error:
            if "element not interactable" not in str(error):
                raise
            return False
        return True

    def press(self, *keys: str) -> None:
        """Together, as Ctrl and C."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        source = {"type": "key", "id": "keyboard", "actions": [*down, *up]}
        self._ask("POST", "/actions", {"actions": [source]})

    def click(self, selector: str) -> None:
        self._ask("POST", f"/element/{self._find(selector)}/click", {})

    def text(self, selector: str) -> str:
        return str(self.run(f"return document.querySelector({json.dumps(selector)})?.textContent ?? ''"))

    def run(self, script: str) -> Any:
        return self._ask("POST", "/execute/sync", {"script": script, "args": []})

    def resize(self, width: int, height: int) -> None:
        self._ask("POST", "/window/rect", {"width": width, "height": height})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the browser's console has been told of faults since it was last asked."""
        found = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def cdp(self, command: str, params: dict[str, object]) -> None:
        """Something only Chromium has."""
        self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def until(self, check: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not check():
            assert time.monotonic() < deadline, "what the page should show did not come"
            time.sleep(0.02)

    def _find(self, selector: str) -> str:
        return self._ask("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]

    def _ask(self, verb: str, path: str, body: object = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            place = f"/session/{self._session}{path}" if self._session else "/session"
            connection.request(verb, place, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            told = json.loads(answer.read())["value"]
        finally:
            connection.close()
        assert answer.status == 200, told
        return told
