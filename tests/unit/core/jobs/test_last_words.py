import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.event import Reason
from trainshed.core.jobs.last_words import find_chains, lines_that_matter, mask, spoken
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.verdict import Evidence, judge
from trainshed.data.verdict_rules import load_rules


def chains(text: str) -> list[list[str]]:
    return [[raised.line for raised in chain] for chain in find_chains(spoken(text.split("\n")))]


def frames(count: int, file: str = "train.py") -> str:
    return "".join(f'  File "{file}", line {n}, in f{n}\n    call({n})\n    ~~~~^^^\n' for n in range(count))


def test_progress_bars_and_escape_codes_are_no_words() -> None:
    said = [
        " 45%|####5     | 45/100 [00:03<00:04, 13.1it/s]",
        "\r10/100\r\x1b[31mloss 0.3\x1b[0m",
        "[=======>......................] - ETA: 3s",
        "━━━━━━━━━━━━━━━━━━━━ 12.1/12.1 MB 9.8 MB/s",
        "epoch 1 | loss 0.5 | 3.2 s",
        "files[0] = 1.5",
    ]
    assert spoken(said) == ["loss 0.3", "epoch 1 | loss 0.5 | 3.2 s", "files[0] = 1.5"]


def test_what_would_move_a_terminal_is_taken_out() -> None:
    assert spoken(["\x1b]0;title\x07a\x1b(b\x00\x08\x9b2Jc\u2028d\te"]) == ["a(b2Jcd e"]


@pytest.mark.parametrize(
    "piece", ["\x1b]", "1it/s", "1%|", "token", "a.", "1", 'File "', "store", "x", "[====", "|"]
)
def test_no_text_however_made_takes_long_to_judge(piece: str) -> None:
    """The steps are counted by the clock of the whole suite: a pattern that explodes would never end."""
    said = [piece * (200_000 // len(piece))] * 300
    judge(Evidence(reason=Reason.PROGRAM_FAILED, exit=Exit(code=1), stderr=said), load_rules())


def test_a_traceback_behind_a_progress_bar_on_the_same_line_is_found() -> None:
    told = f"  3%|#  | 3/99 [00:01<00:31, 3.0it/s]Traceback (most recent call last):\n{frames(1)}KeyError: 1"
    assert chains(told) == [["KeyError: 1"]]


def test_the_prefix_torch_gives_each_line_is_taken_off() -> None:
    told = "".join(
        f"[rank0]: {line}\n"
        for line in f"Traceback (most recent call last):\n{frames(2)}ValueError: x".split("\n")
    )
    assert chains(told) == [["ValueError: x"]]


def test_exceptions_that_led_to_each_other_are_one_chain() -> None:
    one = f"Traceback (most recent call last):\n{frames(1)}"
    told = (
        f"{one}KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
        f"{one}ValueError: 2\n\nThe above exception was the direct cause of the following exception:\n\n"
        f"{one}RuntimeError: 3\n\nlater\n{one}OSError: 4\n"
    )
    assert chains(told) == [["KeyError: 1", "ValueError: 2", "RuntimeError: 3"], ["OSError: 4"]]


def test_a_loaders_original_traceback_belongs_to_the_one_around_it() -> None:
    told = (
        f"Traceback (most recent call last):\n{frames(1)}"
        "OSError: Caught OSError in DataLoader worker process 0.\n"
        f"Original Traceback (most recent call last):\n{frames(1)}OSError: [Errno 2] No such file: 'a.jpg'\n"
    )
    assert chains(told) == [
        [
            "OSError: Caught OSError in DataLoader worker process 0.",
            "OSError: [Errno 2] No such file: 'a.jpg'",
        ]
    ]


def test_a_traceback_that_is_cut_off_does_not_count() -> None:
    assert chains(f"Traceback (most recent call last):\n{frames(2)}") == []


def test_the_message_of_an_exception_ends_at_a_blank_line_or_a_loggers() -> None:
    told = f"Traceback (most recent call last):\n{frames(1)}ValueError: one\ntwo\n\nthree\n"
    (chain,) = find_chains(spoken(told.split("\n")))
    assert chain[0].text == "ValueError: one\ntwo"
    logged = (
        f"Traceback (most recent call last):\n{frames(1)}ValueError: one\nE1115 15:52:35.2 4 api.py] failed"
    )
    (chain,) = find_chains(spoken(logged.split("\n")))
    assert chain[0].text == "ValueError: one"


def test_what_the_fault_handler_prints_reads_like_a_traceback() -> None:
    told = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
        '  File "a.py", line 2 in inner\n  File "a.py", line 5 in outer\n\nExtension modules: numpy\n'
    )
    (chain,) = find_chains(spoken(told.split("\n")))
    assert lines_that_matter(chain) == (
        '  File "a.py", line 5 in outer',
        '  File "a.py", line 2 in inner',
        "Fatal Python error: Segmentation fault",
    )


def test_of_a_long_traceback_the_programs_own_calls_stay() -> None:
    library = frames(30, "/venv/lib/python3.11/site-packages/torch/nn.py")
    told = f"Traceback (most recent call last):\n{frames(3)}{library}ValueError: x"
    (chain,) = find_chains(spoken(told.split("\n")))
    lines = list(lines_that_matter(chain))
    assert len(lines) <= 20
    assert [line for line in lines if "train.py" in line] == [
        f'  File "train.py", line {n}, in f{n}' for n in range(3)
    ]
    assert "line 29, in f29" in lines[-3]  # where it was raised
    assert lines[-1] == "ValueError: x"
    assert any("more calls" in line for line in lines)
    assert not any("^" in line for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=hf_abcDEF123456789012345",
        "export AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI/K7MDENG1'",
        "{'api_key': 'abc123def456'}",
        "DB_PASSWORD=hunter2",
        "Authorization: Bearer abc123def456ghi",
        "postgres://me:hunter2@db/x",
        "using key sk-proj-abc123def456ghi789",
        "token = ghp_abcdefghij0123456789abcd",
    ],
)
def test_what_looks_like_a_secret_is_masked(text: str) -> None:
    masked = mask(text)
    assert "***" in masked
    assert not any(part in masked for part in ("abc123", "hunter2", "abcDEF", "wJalr", "abcdefghij"))


@pytest.mark.parametrize(
    "text",
    [
        "TOKENIZERS_PARALLELISM=false",
        "max_tokens=512 pad_token='<pad>'",
        "KeyError: 'token'",
        "SyntaxError: unexpected token: something",
        "https://host:8080/path",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert mask(text) == text


PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):",
        "Original Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "    call()",
        "    ^^^^",
        "ValueError: x",
        "The above exception was the direct cause of the following exception:",
        "Fatal Python error: Aborted",
        "Current thread 0x1 (most recent call first):",
        "",
        " 5%|# | 1/9 [0:01, 1it/s]",
        "\r\x1b[0m",
        "x" * 5000,
    ]
)


@given(
    st.lists(PIECES | st.text(max_size=40), max_size=60),
    st.builds(Exit, st.none() | st.integers(0, 255), st.none() | st.integers(1, 64)),
)
def test_whatever_was_said_there_is_a_verdict_of_at_most_twenty_short_lines(
    said: list[str], end: Exit
) -> None:
    verdict = judge(Evidence(reason=Reason.PROGRAM_FAILED, exit=end, stderr=said, stdout=said), load_rules())
    assert len(verdict.lines) <= 20
    assert all(len(line) <= 400 for line in verdict.lines)
    assert len(verdict.summary) <= 400
