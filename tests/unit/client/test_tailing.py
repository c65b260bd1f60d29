import json
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.client.scripted import Asked, Handler, Script, entry, failure
from trainshed.client import ApiError, Client, Unreachable


def texts(script: Script, **how: object) -> list[str]:
    with Client(script.url, "secret") as client:
        return [line["text"] for line in client.tail("7", **how)]  # pyright: ignore[reportArgumentType]


def test_a_line_is_there_before_the_next_one_is_written(script: Script) -> None:
    seen = threading.Semaphore(0)
    late: list[int] = []

    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        for number in range(3):
            handler.piece(entry(number, f"line {number}"))
            if not seen.acquire(timeout=30):
                late.append(number)
        handler.end_stream()

    script.answer = answer
    with Client(script.url) as client:
        for _ in client.tail("7", follow=True):
            seen.release()
    assert late == []


def test_lines_are_whole_however_the_network_cuts_them_and_keepalives_are_left_out(script: Script) -> None:
    data = b"\n" + entry(1, "one") + b"\n\n" + entry(2, "zwei ü") + entry(3, "x" * 100_000).rstrip(b"\n")

    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        for at in range(0, 400, 7):
            handler.piece(data[at : at + 7] if at + 7 < 400 else data[at:])
        handler.end_stream()

    script.answer = answer
    assert texts(script) == ["one", "zwei ü", "x" * 100_000]


def test_what_is_asked_for_is_sent_and_nothing_else(script: Script) -> None:
    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        handler.end_stream()

    script.answer = answer
    assert texts(script) == []
    assert texts(script, task="workerpool0-1", attempt=0, limit=5) == []
    assert texts(script, follow=True, task="workerpool0-1", attempt=0) == []
    plain, full, followed = script.paths()
    assert plain.endswith("/customJobs/7:tail")
    assert full.endswith(":tail?task=workerpool0-1&attempt=0&limit=5")
    assert followed.endswith(":tail?follow=true&task=workerpool0-1&attempt=0")


def behind(asked: Asked, lines: list[bytes]) -> list[bytes]:
    """As the server does: only the lines behind the one whose id is given."""
    after = parse_qs(urlsplit(asked.path).query).get("after", [""])[0]
    return [line for line in lines if json.loads(line)["insertId"] > after]


def test_following_from_the_last_lines_goes_on_behind_them(script: Script) -> None:
    lines = [entry(number, str(number)) for number in range(10)]

    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        for line in behind(asked, lines) if "follow" in asked.path else lines[5:7]:
            handler.piece(line)
        handler.end_stream()

    script.answer = answer
    assert texts(script, follow=True, limit=2) == ["5", "6", "7", "8", "9"]


def test_a_broken_stream_is_taken_up_again_with_no_line_lost_or_doubled(script: Script) -> None:
    lines = [entry(number, str(number), task=f"workerpool0-{number % 2}") for number in range(10)]

    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        for line in behind(asked, lines)[:3]:
            handler.piece(line)
        if len(behind(asked, lines)) <= 3:
            handler.end_stream()
        handler.hang_up()

    script.answer = answer
    assert texts(script, follow=True) == [str(number) for number in range(10)]
    assert len(script.asked) == 4


def test_a_refused_stream_is_an_error_at_once(script: Script) -> None:
    script.answer = lambda asked, handler: failure(404, "NOT_FOUND", "no such job")
    with pytest.raises(ApiError, match="no such job"):
        texts(script, follow=True)
    assert len(script.asked) == 1


def test_a_server_that_was_never_there_is_not_waited_for(script: Script) -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(Unreachable):
        next(client.tail("7", follow=True))


def test_hints_that_end_are_asked_for_again_and_a_refusal_then_is_told(script: Script) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object] | None:
        if len(script.asked) > 1:
            return failure(403, "PERMISSION_DENIED", "ann has no role")
        handler.begin_stream()
        handler.piece(b'id: 5\ndata: {"everything": true}\n\n')
        handler.end_stream()
        return None

    script.answer = answer
    with Client(script.url) as client:
        watched = client.watch()
        assert next(watched) == {"everything": True}
        with pytest.raises(ApiError, match="ann has no role"):
            next(watched)
    assert script.paths()[1].endswith(":watch?after=5")
