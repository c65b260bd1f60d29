"""What replicas wrote, on its way to stdout: bytes as they are, prefixes in bulk, expressions over lines."""

import re

import pytest

from trainshed.cli.failure import Misuse
from trainshed.cli.follow import Printer
from trainshed.cli.grep import LONGEST, Grep
from trainshed.client import Json


def head(task: str = "w0-0", stream: str = "stdout", **more: object) -> Json:
    return {"task": task, "stream": stream, "attempt": 0, **more}


def printed(
    frames: list[tuple[Json, bytes]], capture: pytest.CaptureFixture[bytes], *, prefix: bool = False
) -> bytes:
    Printer(prefix=prefix, as_json=False, width=4).print_output(frames)
    return capture.readouterr().out


def test_bytes_of_one_stream_come_out_as_they_went_in(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    pieces = [b"x" * 70_000, b"y\n\xff\0\r", b"\n\nlast"]
    assert printed([(head(), piece) for piece in pieces], capsysbinary) == b"".join(pieces)


def test_a_newline_is_added_only_where_another_stream_follows_an_unended_line(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    frames = [
        (head(), b"a long"),
        (head(stream="stderr"), b"error\n"),
        (head(), b" line\nopen"),
        (head(marker=True), b"[gone]\n"),
        (head(), b"end\n"),
    ]
    assert printed(frames, capsysbinary) == b"a long\nerror\n line\nopen\n[gone]\nend\n"


def test_every_line_of_several_replicas_begins_with_its_name_and_a_line_that_goes_on_does_not(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    frames = [(head(), b"one\n\ntwo"), (head(), b" more\n"), (head("w1-0"), b"x"), (head(), b"three")]
    assert printed(frames, capsysbinary, prefix=True) == (
        b"w0-0 | one\nw0-0 | \nw0-0 | two more\nw1-0 | x\nw0-0 | three"
    )


def test_an_expression_is_looked_for_in_whole_lines_wherever_they_are_cut() -> None:
    found = Grep("^b.*d$").chosen(
        iter([(head(), b"abcd\nbc"), (head("w1-0"), b"b"), (head(), b"d\nbxd"), (head("w1-0"), b"d\nbx")])
    )
    assert [(one["task"], data) for one, data in found] == [
        ("w0-0", b"bcd\n"),
        ("w1-0", b"bd\n"),
        ("w0-0", b"bxd"),
    ]


def test_a_line_without_end_is_looked_at_in_parts_and_bytes_stay_what_they_are() -> None:
    frames = [(head(), b"x" * 65_536)] * (2 * LONGEST // 65_536) + [(head(), b"\xff needle\n")]
    found = list(Grep("needle").chosen(iter(frames)))
    assert [data[-9:] for _, data in found] == [b"\xff needle\n"]
    assert len(found[0][1]) <= LONGEST + 65_536


@pytest.mark.parametrize(
    "expression",
    [
        "loss",
        "a.*b",
        "x*",
        "",
        "a|",
        r"\bab\b",
        r"\d+\.\d",
        "[a-c]b",
        "(?:ab)+",
        "a{2}",
        "^b",
        "b$",
        r"\s",
        "[^a]b",
        r"\W",
        r"b\Z",
        r"\B",
        "(?i)LOSS",
        "a(?!b)",
        "a(?=\n)",
        "a\nb",
        r"\nb",
        "[\x00-z]b",
        ".++b",
        r"\.",
        "]",
        r"a\$",
    ],
)
def test_every_expression_finds_in_many_lines_what_it_finds_in_each(expression: str) -> None:
    lines = ["", "", "ab", "loss=0.5 a", "b", " ", "aab ab", "x.y", "", "a$ \u00e4b", "]", "bb", "\tab", "b"]
    wanted = [line for line in lines if re.search(expression, line)]
    data = "".join(f"{line}\n" for line in lines).encode()
    chosen = b"".join(part for _, part in Grep(expression).chosen(iter([(head(), data)])))
    assert chosen == "".join(f"{line}\n" for line in wanted).encode()


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(Misuse, match="not a regular expression"):
        Grep("(")
