"""What the kernel tells of a container's groups and network, read from its texts."""

import json
from pathlib import Path

from trainshed.backends.container.stats import (
    ContainerCgroups,
    ContainerSampler,
    LiveContainer,
    carried,
    cpu_in,
    devices,
    groups_of,
    memory_in,
)
from trainshed.core.names import ReplicaName, RunKey

OLD_MOUNTS = """34 33 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
37 33 0:34 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
43 33 0:40 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
NEW_MOUNTS = "43 33 0:40 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
KEY = RunKey(ReplicaName("job", 1, 0, 0), 0)


def test_the_groups_of_a_container_are_found_in_old_trees_and_new_ones():
    old = groups_of(OLD_MOUNTS, "4:memory:/libpod/a\n2:cpu,cpuacct:/libpod/a\n0::/libpod/a\n")
    assert old == ContainerCgroups("/sys/fs/cgroup/cpu,cpuacct/libpod/a", "/sys/fs/cgroup/memory/libpod/a")
    new = groups_of(NEW_MOUNTS, "0::/machine.slice/libpod-a.scope/container\n")
    place = "/sys/fs/cgroup/machine.slice/libpod-a.scope/container"
    assert new == ContainerCgroups(place, place, is_new=True)


def test_the_group_of_the_whole_machine_is_no_containers():
    assert not groups_of(OLD_MOUNTS, "4:memory:/\n2:cpu,cpuacct:/\n0::/\n").members
    assert not groups_of("", "").members


def test_cpu_and_memory_are_read_from_old_groups(tmp_path: Path):
    (tmp_path / "cpuacct.usage").write_text("1500000000\n")
    (tmp_path / "memory.usage_in_bytes").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 300\n")
    groups = ContainerCgroups(str(tmp_path), str(tmp_path))
    assert (cpu_in(groups), memory_in(groups)) == (1.5, 700)


def test_cpu_and_memory_are_read_from_new_groups(tmp_path: Path):
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 300\n")
    groups = ContainerCgroups(str(tmp_path), str(tmp_path), is_new=True)
    assert (cpu_in(groups), memory_in(groups)) == (2.5, 700)


def test_what_the_kernel_does_not_tell_is_not_guessed(tmp_path: Path):
    for groups in (
        ContainerCgroups(),
        ContainerCgroups(str(tmp_path), str(tmp_path)),
        ContainerCgroups(str(tmp_path), str(tmp_path), True),
    ):
        assert (cpu_in(groups), memory_in(groups)) == (None, None)


def test_traffic_is_that_of_all_interfaces_but_loopback():
    text = b"""Inter-|   Receive                  |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:     999       9    0    0    0     0          0         0      999       9    0    0
  eth0:     340       4    0    0    0     0          0         0       90       1    0    0
  eth1:      60       4    0    0    0     0          0         0       10       1    0    0
"""
    assert carried(text) == (400, 100)
    assert carried(b"") == (0, 0)


def test_the_gpus_of_a_run_are_those_it_was_made_with(tmp_path: Path):
    body = {"Env": ["A=b=c", "NVIDIA_VISIBLE_DEVICES=1,3"]}
    (tmp_path / "launch.json").write_text(json.dumps({"container": "c", "body": body}))
    assert devices(str(tmp_path)) == ("1", "3")
    body = {"Env": ["NVIDIA_VISIBLE_DEVICES=void"]}
    (tmp_path / "launch.json").write_text(json.dumps({"container": "c", "body": body}))
    assert devices(str(tmp_path)) == ()
    assert devices(str(tmp_path / "none")) == ()


def process(proc: Path, pid: int, parent: int, ticks: int) -> None:
    folder = proc / str(pid)
    (folder / "net").mkdir(parents=True, exist_ok=True)
    fields = ["S", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 30]
    (folder / "stat").write_text(f"{pid} (x) {' '.join(fields)}")
    (folder / "statm").write_text("10 5 2 0 0 0 0")
    (folder / "io").write_text(f"read_bytes: {pid}\nwrite_bytes: 7\n")
    (folder / "cgroup").write_text("0::/\n")
    (folder / "net/dev").write_text("a\nb\n eth0: 5 0 0 0 0 0 0 0 6 0\n")


def test_without_groups_the_processes_of_a_container_are_those_below_its_init(tmp_path: Path):
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1)):
        process(tmp_path, pid, parent, ticks=100)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(NEW_MOUNTS)
    sampler = ContainerSampler(proc=str(tmp_path))
    usage = sampler.sample({KEY: LiveContainer(10)})[KEY]
    assert usage.processes == 2
    assert usage.cpu_seconds == 3.0
    assert (usage.read_bytes, usage.written_bytes) == (33, 21)
    assert (usage.received_bytes, usage.sent_bytes) == (5, 6)
    assert usage.memory is not None and usage.memory > 0
    assert sampler.sample({KEY: LiveContainer(99)}) == {}  # it has ended meanwhile
