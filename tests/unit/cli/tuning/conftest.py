import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cli.terminal import Terminal
from tests.unit.cli.tuning.told import ToldStudies
from tests.unit.client.scripted import Asked, Handler

Serve = Callable[[ToldStudies], ToldStudies]


@pytest.fixture
def serve(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Makes the scripted server tell of these studies, beside what it tells of jobs."""
    plain = terminal.answer
    monkeypatch.setattr("trainshed.cli.tuning.follow_study.EVERY", 0.01)

    def serve(studies: ToldStudies) -> ToldStudies:
        def answer(asked: Asked, handler: Handler) -> tuple[int, Any] | None:
            if ":watch" in asked.path:
                time.sleep(0.05)
                return 200, {}
            return studies.answer(asked, handler) or plain(asked, handler)

        terminal.script.answer = answer
        return studies

    return serve
