"""Event files are read whatever is in them: torn, damaged, hostile, or of another kind."""

import os
import random
import struct
from typing import Any

import google_crc32c
import pytest

from tests.event_bytes import VERSION, event, event_file, field, masked, record, simple, tensor
from trainshed.core.tuning.event_file import MOST_RECORD, read_events, scalars_of

crc: Any = getattr(google_crc32c, "value")  # noqa: B009 - untyped


def told(data: bytes) -> list[tuple[int, str, float]]:
    return [(item.step, item.tag, round(item.value, 4)) for item in read_events(data, crc).scalars]


def test_scalars_are_read_with_their_steps_and_times():
    piece = read_events(VERSION + event(7, simple("loss", 0.5), simple("acc", 0.25), at=12.5), crc)
    assert [(item.tag, item.step, item.at, item.value) for item in piece.scalars] == [
        ("loss", 7, 12.5, 0.5),
        ("acc", 7, 12.5, 0.25),
    ]
    assert not piece.broken and not piece.damaged


@pytest.mark.parametrize(
    "value",
    [
        tensor("loss", 0.5),
        tensor("loss", 0.5, by_content=False),
        tensor("loss", 0.5, kind=2),
        tensor("loss", 0.5, kind=2, by_content=False),
        tensor("loss", 0.5, name=""),
    ],
)
def test_tensors_that_are_scalars_are_read(value: bytes):
    assert told(event(3, value)) == [(3, "loss", 0.5)]


@pytest.mark.parametrize(
    "value",
    [
        tensor("loss", 0.5, name="histograms"),
        tensor("loss", 0.5, name="text"),
        field(1, b"loss") + field(5, b"histogram"),
        field(1, b"loss") + field(8, field(1, 1) + field(4, struct.pack("<ff", 1, 2))),
        field(1, b"loss") + field(8, field(1, 7) + field(8, b"a text")),
        simple("", 1),
        b"\xff\xff\xff",
    ],
)
def test_what_is_no_scalar_is_passed_over(value: bytes):
    assert told(event(1, value) + event(2, simple("loss", 1))) == [(2, "loss", 1)]


@pytest.mark.parametrize(("kind", "number"), [(3, 7), (9, 12)])
def test_whole_numbers_are_read(kind: int, number: int):
    values = 7 if kind == 3 else 10
    body = field(1, kind) + field(values, number)
    assert told(event(1, field(1, b"n") + field(8, body))) == [(1, "n", float(number))]


def test_a_torn_record_is_read_once_it_is_whole():
    data = event_file([(1, "loss", 1), (2, "loss", 2)])
    for cut in range(len(data)):
        first = read_events(data[:cut], crc)
        second = read_events(data[first.used :], crc)
        assert [item.step for item in first.scalars + second.scalars] == [1, 2]
        assert not first.broken


def test_a_damaged_message_costs_itself():
    good = event(1, simple("loss", 1))
    bad = bytearray(event(2, simple("loss", 2)))
    bad[-8] ^= 1
    piece = read_events(good + bytes(bad) + event(3, simple("loss", 3)), crc)
    assert [item.step for item in piece.scalars] == [1, 3]
    assert piece.damaged == 1


def test_a_damaged_length_ends_the_file_there():
    piece = read_events(event(1, simple("loss", 1)) + b"\1" * 40 + event(2, simple("loss", 2)), crc)
    assert [item.step for item in piece.scalars] == [1]
    assert piece.broken and piece.used == len(event(1, simple("loss", 1)))


def test_a_long_record_is_passed_over_without_being_there():
    length = struct.pack("<Q", 10**9)
    piece = read_events(length + masked(length) + b"x" * 100, crc)
    assert piece.used == 10**9 + 16 and piece.scalars == ()
    image = record(b"\0" * (MOST_RECORD + 1))
    assert told(image + event(1, simple("loss", 1))) == [(1, "loss", 1)]


def test_negative_steps_are_told_as_they_are():
    assert [item.step for item in read_events(event(-3, simple("a", 1)), crc).scalars] == [-3]


def test_no_bytes_make_it_fail():
    numbers = random.Random(7)
    whole = field(1, 1.0) + field(2, 5) + field(5, field(1, tensor("loss", 1)) + field(1, simple("a", 1)))
    for _ in range(3000):
        bad = bytearray(whole)
        for _ in range(numbers.randint(1, 6)):
            bad[numbers.randrange(len(bad))] = numbers.randrange(256)
        scalars_of(bytes(bad[: numbers.randint(0, len(bad))]))
        read_events(record(bytes(bad)), crc)
    read_events(os.urandom(100_000), crc)
