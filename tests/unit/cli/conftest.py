import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.client.scripted import Script, scripted


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as found:
        yield found


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: Script, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    for name in [name for name in os.environ if name.startswith(("TRAINSHED_", "CLOUDSDK_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TRAINSHED_HOME", str(tmp_path))
    (tmp_path / "server.json").write_text(json.dumps({"url": script.url, "pid": 1}))
    found = Terminal(script, capsys)
    script.answer = found.answer
    return found
