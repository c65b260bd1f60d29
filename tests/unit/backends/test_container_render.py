"""The body by which an engine makes a container: everything in it is said here."""

from dataclasses import replace
from typing import Any

import pytest

from trainshed.backends.container.render import (
    ContainerFrame,
    Mount,
    RunMounts,
    devices,
    render,
    spec,
    without_secrets,
)
from trainshed.backends.container.run import BLANK
from trainshed.backends.machine.image_config import command_line
from trainshed.backends.machine.init_record import parse_record
from trainshed.core.jobs.launch import Launch, RemoteRole
from trainshed.core.jobs.limits import LEAST_MEMORY
from trainshed.core.jobs.replica import Exit
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Sink
from trainshed.core.queue.fleet import Placement
from trainshed.core.supplies.image import ImageConfig

GIB = 1 << 30
IMAGE = ImageConfig(
    id="sha256:1",
    entrypoint=("serve", "--now"),
    command=("default",),
    env={"PATH": "/bin", "NVIDIA_VISIBLE_DEVICES": "all", "WHO": "image"},
    user="65534",
    workdir="/srv",
)
FRAME = ContainerFrame(
    home="abcd",
    init="/home/bin/init",
    record="/home/jobs/j/1/0-1/2/record",
    podman=True,
    network="trainshed-abcd-j",
    address="10.210.0.3",
    hosts={"workerpool0-0": "10.210.0.2", "workerpool0-1": "10.210.0.3"},
    processes=4096,
    output=Sink(stdout="/logs/out", stderr="/logs/err"),
)
PLACE = Placement(pool=0, index=1, node="local", host="workerpool0-1", cpus=1.5, memory=2 * GIB)
LAUNCH = Launch(
    key=RunKey(ReplicaName("j", 1, 0, 1), 2),
    image="some:1",
    command=(),
    args=("--fast",),
    env={"WHO": "job"},
    placement=PLACE,
    peers=("workerpool0-0", "workerpool0-1"),
)
OWN_MOUNTS = [
    {"Type": "bind", "Source": "/home/bin/init", "Target": "/.trainshed/init", "ReadOnly": True},
    {"Type": "bind", "Source": FRAME.record, "Target": "/.trainshed/record", "ReadOnly": False},
    {"Type": "bind", "Source": "/logs/out", "Target": "/.trainshed/out", "ReadOnly": False},
    {"Type": "bind", "Source": "/logs/err", "Target": "/.trainshed/err", "ReadOnly": False},
]


def host(body: dict[str, object]) -> dict[str, object]:
    found = body["HostConfig"]
    assert isinstance(found, dict)
    return found


def test_a_launch_is_rendered_whole():
    assert render(LAUNCH, IMAGE, FRAME, RunMounts()) == {
        "Image": "sha256:1",
        "Entrypoint": ["/.trainshed/init"],
        "Cmd": ["serve", "--now", "--fast"],
        "Env": [
            "PYTHONUNBUFFERED=1",
            "PATH=/bin",
            "NVIDIA_VISIBLE_DEVICES=void",
            "WHO=job",
            "TRAINSHED_RUN=j.1.0.1.2",
        ],
        "User": "65534",
        "WorkingDir": "/srv",
        "Hostname": "workerpool0-1",
        "Labels": {"trainshed.home": "abcd", "trainshed.job": "j", "trainshed.run": "j.1.0.1.2"},
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "Binds": [],
            "Mounts": OWN_MOUNTS,
            "NetworkMode": "trainshed-abcd-j",
            "ExtraHosts": ["workerpool0-0:10.210.0.2", "workerpool0-1:10.210.0.3"],
            "Memory": 2 * GIB,
            "MemorySwap": 2 * GIB,
            "CpuPeriod": 100_000,
            "CpuQuota": 150_000,
            "PidsLimit": 4096,
            "ShmSize": GIB,
            "CapDrop": ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "none", "Config": {}},
        },
        "NetworkingConfig": {
            "EndpointsConfig": {"trainshed-abcd-j": {"IPAMConfig": {"IPv4Address": "10.210.0.3"}}}
        },
    }


def test_what_would_be_created_is_shown_without_files_for_its_output():
    assert host(render(LAUNCH, IMAGE, replace(FRAME, output=None), RunMounts()))["Mounts"] == OWN_MOUNTS[:2]


@pytest.mark.parametrize(
    ("command", "args", "given", "expected"),
    [
        ((), (), (), ("serve", "--now", "default")),
        ((), ("a",), (), ("serve", "--now", "a")),
        (("run",), (), (), ("run",)),
        (("run",), ("a",), (), ("run", "a")),
        ((), ("a",), ("python3", "-m", "x"), ("python3", "-m", "x", "a")),
        (("run",), ("a",), ("python3", "-m", "x"), ("run", "a")),
    ],
)
def test_a_command_replaces_the_entry_point_and_arguments_those_of_the_image(
    command: tuple[str, ...], args: tuple[str, ...], given: tuple[str, ...], expected: tuple[str, ...]
):
    launch = replace(LAUNCH, command=command, args=args)
    assert command_line(launch, IMAGE, given) == expected


def test_podman_is_given_gpus_by_their_cdi_names_and_docker_by_request_and_only_those_allotted():
    launch = replace(LAUNCH, placement=replace(PLACE, gpus=("1", "3")))
    by_podman = render(launch, IMAGE, FRAME, RunMounts())
    by_docker = render(launch, IMAGE, replace(FRAME, podman=False), RunMounts())
    assert host(by_podman)["DeviceRequests"] == [
        {
            "Driver": "cdi",
            "DeviceIDs": ["nvidia.com/gpu=1", "nvidia.com/gpu=3"],
            "Capabilities": [["gpu"]],
        }
    ]
    assert host(by_docker)["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["1", "3"], "Capabilities": [["gpu"]]}
    ]
    for body in (by_podman, by_docker):
        env = body["Env"]
        assert isinstance(env, list) and "NVIDIA_VISIBLE_DEVICES=1,3" in env


def test_what_no_runtime_could_start_with_is_raised_to_what_it_can():
    body = render(replace(LAUNCH, placement=replace(PLACE, memory=1)), IMAGE, FRAME, RunMounts())
    assert host(body)["Memory"] == host(body)["MemorySwap"] == LEAST_MEMORY


def test_a_container_without_a_limit_of_processes_is_said_to_have_none():
    body = render(LAUNCH, IMAGE, replace(FRAME, processes=0), RunMounts())
    assert host(body)["PidsLimit"] == -1  # without a number Podman would choose one


def test_furniture_is_beside_our_own_and_weaker_than_the_jobs_variables():
    run_mounts = RunMounts(
        mounts=(Mount(source="/code", target="/trainshed/code"),),
        env={"WHO": "furniture", "TMPDIR": "/t"},
        workdir="/trainshed/code",
    )
    body = render(LAUNCH, IMAGE, FRAME, run_mounts)
    bound = {"Type": "bind", "Source": "/code", "Target": "/trainshed/code", "ReadOnly": False}
    assert host(body)["Mounts"] == [*OWN_MOUNTS, bound]
    assert body["WorkingDir"] == "/trainshed/code"
    env = body["Env"]
    assert isinstance(env, list) and "WHO=job" in env and "TMPDIR=/t" in env


def test_a_job_without_names_gets_an_address_of_the_engines_choice():
    launch = replace(LAUNCH, peers=(), placement=replace(PLACE, host="127.0.0.1"))
    body = render(launch, IMAGE, replace(FRAME, address="", hosts={}), RunMounts())
    assert "Hostname" not in body
    assert body["NetworkingConfig"] == {"EndpointsConfig": {"trainshed-abcd-j": {}}}


def test_podmans_own_words_say_all_that_the_body_says():
    run_mounts = RunMounts(
        mounts=(
            Mount(source="/code", target="/trainshed/code"),
            Mount(source="v", target="/data", options={"Type": "volume"}),
        ),
        quota=GIB,
    )
    launch = replace(LAUNCH, placement=replace(PLACE, gpus=("1",)))
    body = render(launch, IMAGE, FRAME, run_mounts)
    assert devices(body) == ["nvidia.com/gpu=1"]
    own = [(one["Source"], one["Target"], "ro" if one["ReadOnly"] else "rw") for one in OWN_MOUNTS]
    assert spec("name", body) == {
        "name": "name",
        "image": "sha256:1",
        "entrypoint": ["/.trainshed/init"],
        "command": ["serve", "--now", "--fast"],
        "env": {
            "PYTHONUNBUFFERED": "1",
            "PATH": "/bin",
            "NVIDIA_VISIBLE_DEVICES": "1",
            "WHO": "job",
            "TRAINSHED_RUN": "j.1.0.1.2",
        },
        "user": "65534",
        "work_dir": "/srv",
        "hostname": "workerpool0-1",
        "labels": body["Labels"],
        "mounts": [
            {"type": "bind", "source": source, "destination": target, "options": ["rbind", mode]}
            for source, target, mode in (*own, ("/code", "/trainshed/code", "rw"))
        ],
        "volumes": [{"Name": "v", "Dest": "/data", "Options": ["nocopy"]}],
        "netns": {"nsmode": "bridge"},
        "Networks": {"trainshed-abcd-j": {"static_ips": ["10.210.0.3"]}},
        "hostadd": ["workerpool0-0:10.210.0.2", "workerpool0-1:10.210.0.3"],
        "resource_limits": {
            "memory": {"limit": 2 * GIB, "swap": 2 * GIB},
            "cpu": {"quota": 150_000, "period": 100_000},
            "pids": {"limit": 4096},
        },
        "shm_size": GIB,
        "cap_drop": ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"],
        "no_new_privileges": True,
        "restart_policy": "no",
        "log_configuration": {"driver": "none"},
        "devices": [{"path": "nvidia.com/gpu=1"}],
        "storage_opts": {"size": str(GIB)},
    }


# Records


def test_a_record_is_read_line_by_line_and_an_unended_one_is_none():
    record = parse_record(b"init boot 1000000000\noom 2\nexit 3 2000000000\n" + BLANK)
    assert record.begun and record.boot == "boot" and record.oom == 2 and record.exit == Exit(code=3)
    assert parse_record(b"init boot 1000000000\nexit 3").exit is None
    assert parse_record(b"init boot 1\nsignal 9 2\n").exit == Exit(signal=9)
    assert not parse_record(BLANK).begun


@pytest.mark.parametrize(
    "junk",
    [
        b"exit",
        b"exit x 1",
        b"exit 256 1",
        b"exit -1 1",
        b"signal 0 1",
        b"signal 65 1",
        b"exit 0 1e99",
        b"oom x",
        b"\xff\xfe",
        b"exit 0 99999999999999999999999999",
    ],
)
def test_what_is_no_fact_is_passed_over(junk: bytes):
    record = parse_record(b"init boot 1\n" + junk + b"\n")
    assert record.begun and record.exit is None and record.oom == 0


def test_only_the_first_beginning_counts():
    assert parse_record(b"init a 1000000000\ninit b 9000000000\n").boot == "a"


def test_secrets_that_are_files_are_mounted_to_be_read_and_in_no_body():
    launch = replace(LAUNCH, env={"KEY": "secret-file://key"}, secret_files={"key": "s3cret"})
    body = render(launch, IMAGE, replace(FRAME, secrets="/home/run/secrets"), RunMounts())
    env, mounts = body["Env"], host(body)["Mounts"]
    assert isinstance(env, list) and isinstance(mounts, list)
    assert {"KEY=/trainshed/secrets/key", "TRAINSHED_SECRETS=/trainshed/secrets"} <= set(env)
    mount = {"Type": "bind", "Source": "/home/run/secrets", "Target": "/trainshed/secrets", "ReadOnly": True}
    assert mount in mounts
    assert "s3cret" not in str(body)


def test_a_file_of_the_run_has_no_values_of_secrets():
    body = {"Image": "i", "Env": ["HF_TOKEN=x=y", "LR=1"]}
    assert without_secrets(body, frozenset({"HF_TOKEN"})) == {"Image": "i", "Env": ["LR=1"]}
    assert without_secrets(body, frozenset()) == body


def test_a_container_whose_programs_start_others_elsewhere_has_the_init_by_its_other_name():
    role = RemoteRole(serves=True, servers="", rows="", list_place="/etc/list")
    launch = replace(LAUNCH, remote=role, before=("/.trainshed/remote", "--launch"), command=(), args=())
    body: Any = render(launch, IMAGE, FRAME, RunMounts())
    assert {"/.trainshed/init", "/.trainshed/remote"} <= {m["Target"] for m in body["HostConfig"]["Mounts"]}
    assert body["Cmd"] == ["/.trainshed/remote", "--launch", "serve", "--now", "default"]
