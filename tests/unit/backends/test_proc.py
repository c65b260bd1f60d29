"""What /proc and cgroups say, and what GPUs do by a driver that may fail."""

from types import SimpleNamespace
from typing import Any

import pytest

from trainshed.backends.machine.gpu import Gpus
from trainshed.backends.machine.proc import (
    PAGE,
    Io,
    RisingSum,
    Stat,
    cpu_of_group,
    io_of,
    memory_of,
    stat_of,
)

STAT = (
    b"4321 (a) evil (name) S 77 4321 4321 0 -1 4194304 900 0 1 0 11 22 3 4 20 0 1 0 987654 5 6 "
    b"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)
IO = (
    b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n"
)


def test_a_process_is_read_behind_its_name_whatever_that_holds():
    assert stat_of(STAT) == Stat(parent=77, start=987654, ticks=40, reaped=7, threads=1)


@pytest.mark.parametrize("text", [b"", b"1 (x", b"1 (x) S 1", STAT[:40]])
def test_a_text_cut_off_tells_nothing(text: bytes):
    assert stat_of(text) is None


def test_memory_is_told_in_bytes_with_what_of_it_is_shared():
    assert memory_of(b"1000 500 200 10 0 300 0\n") == (500 * PAGE, 200 * PAGE)
    assert memory_of(b"") == (0, 0)


def test_only_what_reached_a_disk_counts_as_disk():
    assert io_of(IO) == Io(4096, 8192)
    assert io_of(b"") is None
    assert io_of(b"rchar: 1\n") is None


def test_a_group_knows_all_the_cpu_ever_used_in_it():
    assert cpu_of_group(b"usage_usec 1500000\nuser_usec 1\nsystem_usec 2\n") == 1.5
    assert cpu_of_group(b"") is None


def test_a_sum_that_dips_once_stands_still_until_it_has_caught_up():
    rising = RisingSum()
    assert [rising.take(n) for n in (1, 5, 3, 6)] == [1, 5, 5, 6]


def test_a_sum_that_dips_for_good_goes_on_from_where_it_stood():
    rising = RisingSum()
    assert [rising.take(n) for n in (1, 5, 3, 3, 4, 6)] == [1, 5, 5, 5, 6, 8]


class FakeError(Exception):
    pass


def driver(**more: Any) -> Any:
    calls: list[str] = []
    made = {
        "NVMLError": FakeError,
        "calls": calls,
        "nvmlInit": lambda: calls.append("init"),
        "nvmlShutdown": lambda: calls.append("shutdown"),
        "nvmlDeviceGetHandleByIndex": lambda number: number,
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=10 * (handle + 1)),
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=1000 + handle, total=4000),
    }
    return SimpleNamespace(**{**made, **more})


def test_a_run_is_told_of_its_own_gpus_and_the_driver_is_opened_once():
    nvml = driver()
    gpus = Gpus(nvml)
    assert [(g.device, g.share, g.memory) for g in gpus.use(["2"])] == [("2", 0.3, 1002)]
    assert [g.device for g in gpus.use(["0", "1"])] == ["0", "1"]
    gpus.close()
    assert nvml.calls == ["init", "shutdown"]


def test_a_run_without_gpus_does_not_wake_the_driver():
    nvml = driver()
    gpus = Gpus(nvml)
    assert gpus.use([]) == ()
    gpus.close()
    assert nvml.calls == []


def test_a_driver_that_stops_answering_is_complained_of_once(caplog: pytest.LogCaptureFixture):
    def fail(_: object) -> None:
        raise FakeError("GPU is lost")

    gpus = Gpus(driver(nvmlDeviceGetUtilizationRates=fail))
    assert [gpus.use(["0"]) for _ in range(3)] == [(), (), ()]
    assert len(caplog.records) == 1
