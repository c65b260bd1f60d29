"""What the machine does, from the kernel's texts."""

from trainshed.backends.machine.node_stats import cpu_count, idle_seconds, memory_in_use
from trainshed.backends.machine.proc import TICKS
from trainshed.core.queue.node_use import PartInUse

STAT = b"""cpu  100 0 50 4000 1000 0 0 0 0 0
cpu0 50 0 25 2000 500 0 0 0 0 0
cpu1 50 0 25 2000 500 0 0 0 0 0
intr 12345
ctxt 9
"""


def test_cpus_that_wait_for_a_disk_are_idle():
    assert idle_seconds(STAT) == 5000 / TICKS
    assert cpu_count(STAT) == 2


def test_memory_that_can_be_given_back_is_not_in_use():
    text = b"MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  600 kB\nHugePages_Total:  0\n"
    assert memory_in_use(text) == PartInUse(used=400 * 1024, size=1000 * 1024)


def test_texts_of_another_kind_give_nothing():
    assert idle_seconds(b"") is None
    assert idle_seconds(b"no such thing\n") is None
    assert memory_in_use(b"MemTotal: 5 kB\n") is None
