"""What connections carried, from the kernel's words; and what remains of it when they close."""

import struct

from trainshed.backends.process.traffic import Carried, counts_of


def a_message(inode: int, received: int, sent: int, *, info: bool = True) -> bytes:
    head = bytes(68) + struct.pack("=I", inode)
    other = struct.pack("=HH", 5, 8) + b"x\0\0\0"
    told = struct.pack("=HH", 4 + 136, 2) + bytes(120) + struct.pack("=QQ", sent, received)
    return head + other + (told if info else b"")


def test_a_connection_is_told_by_its_inode():
    assert counts_of(a_message(7, received=10, sent=20)) == (7, (10, 20))


def test_what_does_not_say_or_is_cut_off_tells_nothing():
    whole = a_message(7, received=10, sent=20)
    assert counts_of(a_message(7, 1, 2, info=False)) is None
    assert all(counts_of(whole[:length]) in (None, (7, (10, 20))) for length in range(len(whole)))


def test_what_closed_connections_carried_stays_counted():
    carried = Carried()
    carried.add({1: (10, 1), 2: (5, 5), 9: (99, 99)}, {1, 2})
    carried.add({1: (30, 2)}, {1, 2})
    carried.add({}, set())
    assert (carried.received, carried.sent) == (35, 7)


def test_a_number_given_to_another_connection_begins_anew():
    carried = Carried()
    carried.add({1: (10, 10)}, {1})
    carried.add({1: (3, 4)}, {1})
    assert (carried.received, carried.sent) == (13, 14)
