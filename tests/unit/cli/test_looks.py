"""When `ls -w` and `top` look again: at a hint, and now and then without one."""

import time

from tests.unit.client.scripted import Asked, Handler, Script
from trainshed.cli.looks import looks
from trainshed.client.api import Client


def test_a_hint_ends_the_wait_and_without_hints_it_ends_by_itself(script: Script) -> None:
    def answer(asked: Asked, handler: Handler) -> None:
        assert ":watch" in asked.path
        handler.begin_stream()
        handler.piece(b': still here\n\nid: a.1\ndata: {"name": "j", "version": 2}\n\n')
        time.sleep(2)

    script.answer = answer
    with Client(script.url) as client:
        hinted = looks(client, 20.0)
        began = time.monotonic()
        next(hinted)
        next(hinted)
        assert time.monotonic() - began < 15
        unhinted = looks(Client("http://127.0.0.1:1"), 0.05)
        for _ in range(3):
            next(unhinted)
