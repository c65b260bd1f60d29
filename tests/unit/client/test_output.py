"""Output as frames: whole however the network cuts them, and gone on with where the answer broke off."""

import pytest

from tests.unit.client.scripted import END, Asked, Handler, Script, frame
from trainshed.client import ClientError
from trainshed.client.api import Client
from trainshed.client.output import frames


def test_frames_are_whole_however_the_network_cuts_them_and_beats_are_left_out() -> None:
    data = b"\n" + frame(1, b"a\nb") + b"\n\n" + frame(2, b"\n" * 70_000, stream="stderr") + END
    for size in (1, 7, 65_536, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        found = list(frames(pieces))
        assert [(place, head["stream"], body) for place, (head, body) in found] == [
            ("1", "stdout", b"a\nb"),
            ("2", "stderr", b"\n" * 70_000),
        ]


def test_an_answer_that_is_no_output_is_an_error_at_once() -> None:
    with pytest.raises(ClientError, match="not in the form"):
        list(frames([b"x" * 100_000] * 3))


def test_a_broken_answer_is_gone_on_with_behind_the_last_whole_frame(script: Script) -> None:
    answers = [
        frame(1, b"one\n") + frame(2, b"twotwo\n")[:-3],
        frame(2, b"twotwo\n"),
        frame(3, b"three") + END,
    ]

    def answer(asked: Asked, handler: Handler) -> None:
        handler.begin_stream()
        handler.piece(answers[len(script.asked) - 1])
        handler.end_stream()

    script.answer = answer
    with Client(script.url) as client:
        got = b"".join(data for _, data in client.output("7", follow=True, limit=5))
    assert got == b"one\ntwotwo\nthree"
    assert [path.partition("?")[2] for path in script.paths()] == [
        "limit=5&follow=true",
        "limit=5&follow=true&after=1",
        "limit=5&follow=true&after=2",
    ]
