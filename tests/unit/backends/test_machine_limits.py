"""Where a process stands in the cgroup trees, what quotas grant, which ports are drawn from."""

from pathlib import Path

import pytest

from trainshed.backends.machine.cgroup import find
from trainshed.backends.machine.node import quota
from trainshed.backends.process.port import pool

V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
HYBRID = (
    "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(
    ("mounts", "groups", "controller", "path"),
    [
        (V2, "0::/user.slice/me\n", "", "/sys/fs/cgroup/user.slice/me"),
        (V2, "0::/\n", "", "/sys/fs/cgroup"),
        (HYBRID, "4:memory:/box\n0::/\n", "", "/sys/fs/cgroup/unified"),
        (HYBRID, "4:memory:/box\n0::/\n", "memory", "/sys/fs/cgroup/memory/box"),
        (HYBRID, "5:cpu,cpuacct:/q\n", "cpu", "/sys/fs/cgroup/cpu,cpuacct/q"),
        (HYBRID, "4:memory:/box\n", "", None),
        (
            "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 c rw\n",
            "0::/docker/abc/in\n",
            "",
            "/sys/fs/cgroup/in",
        ),
        (V2, "0::/../other\n", "", "/sys/fs/cgroup"),
        ("30 24 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/x\n", "", "/a b/x"),
        ("", "0::/\n", "", None),
    ],
)
def test_the_own_group_is_found_under_every_kind_of_mount(
    mounts: str, groups: str, controller: str, path: str | None
):
    assert find(mounts, groups, controller) == (Path(path) if path else None)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("150000 100000", 1.5), ("200000", 2.0), ("max 100000", None), ("-1", None), ("", None)],
)
def test_a_quota_is_read_as_a_number_of_cpus(text: str, cpus: float | None):
    assert quota(text) == cpus


def test_ports_are_drawn_from_outside_the_kernels_own_range():
    assert pool("32768\t60999\n")[0] == 10_000
    assert not set(pool("15000 60999")) & set(range(15_000, 32_000))
    assert len(pool("1024 65535")) == 22_000
