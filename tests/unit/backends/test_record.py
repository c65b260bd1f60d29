"""What a keeper's record says, however far it got."""

import pytest

from trainshed.backends.machine.processes import Identity
from trainshed.backends.process.record import BLANK, ProcessRecord, parse
from trainshed.core.jobs.replica import Exit

FULL = b"keeper 10 500 b-o-o-t 1700000000000000000\nprogram 11 501\nexit 3 1700000001000000000\n"


def on_blank(text: bytes) -> bytes:
    return text + BLANK[len(text) :]


def test_a_whole_record_tells_everything():
    record = parse(on_blank(FULL))
    assert record.keeper == Identity(10, 500)
    assert record.program == Identity(11, 501)
    assert record.boot == "b-o-o-t"
    assert record.exit == Exit(code=3)
    assert record.started_at is not None and record.ended_at is not None
    assert (record.ended_at - record.started_at).total_seconds() == 1


def test_a_blank_record_tells_nothing():
    assert parse(BLANK) == parse(b"") == ProcessRecord()


@pytest.mark.parametrize("end", range(FULL.rindex(b"exit"), len(FULL)))
def test_an_end_without_its_newline_is_no_end(end: int):
    assert parse(on_blank(FULL[:end])).exit is None
    assert parse(on_blank(FULL[:end])).program == Identity(11, 501)


@pytest.mark.parametrize(
    ("lines", "exit"),
    [
        ("signal 9 1\n", Exit(signal=9)),
        ("exit 137 1\n", Exit(code=137)),
        ("status 0\n", Exit(code=0)),
        ("status 137\n", Exit(code=137)),
        ("Killed\nstatus 137\n", Exit(signal=9)),
        ("keeper: line 45:  6891 Killed   ( trap - HUP; exec 9>&- )\nstatus 137\n", Exit(signal=9)),
        ("Segmentation fault (core dumped)\nstatus 139\n", Exit(signal=11)),
        ("status 130\n", Exit(signal=2)),
        ("status 141\n", Exit(signal=13)),
        ("noise\nstatus 3\n", Exit(code=3)),
    ],
)
def test_a_code_and_a_signal_are_told_apart(lines: str, exit: Exit):
    head = b"keeper 10 500 boot\nprogram 11 501\n"
    assert parse(on_blank(head + lines.encode())).exit == exit
