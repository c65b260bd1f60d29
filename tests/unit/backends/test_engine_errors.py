"""What Docker and Podman answer, and what the callers learn of it: one table with the words of both."""

import json

import pytest

from trainshed.backends.container.engine_errors import (
    EngineFault,
    FaultKind,
    ImageFaultKind,
    fault_of,
    image_fault,
    is_exec_refusal,
    says_no_such_program,
)
from trainshed.backends.container.pull import image_failure

CREATE, KILL, START = "POST /containers/create", "POST /containers/box/kill", "POST /containers/box/start"
POD_CREATE, CONNECT = "POST /libpod/containers/create", "POST /libpod/networks/net/connect"
NETWORK, POD_NETWORK, VOLUME = "POST /networks/create", "POST /libpod/networks/create", "POST /volumes/create"
DELETE_IMAGE, TAG_IMAGE, LOAD = "DELETE /images/team/a:1", "POST /images/team/a:1/tag", "POST /images/load"
EXEC, EXEC_START = "POST /containers/box/exec", "POST /exec/4711/start"

TABLE = [
    # A container that exists already, or no more, or has ended.
    (CREATE, 409, 'Conflict. The container name "/box" is already in use by container "4f".', "NAME_TAKEN"),
    (
        CREATE,
        500,
        'creating container storage: the container name "box" is already in use by 4f',
        "NAME_TAKEN",
    ),
    (POD_CREATE, 500, 'the container name "box" is already in use by 4f', "NAME_TAKEN"),
    (CREATE, 404, "No such image: sha256:4f", "MISSING"),
    (START, 409, "the container name is already in use", "OTHER"),
    ("GET /containers/box/json", 404, "No such container: box", "MISSING"),
    ("DELETE /containers/box", 404, 'no container with name or ID "box" found: no such container', "MISSING"),
    ("DELETE /containers/box", 409, "removal of container box is already in progress", "OTHER"),
    (KILL, 404, "No such container: box", "MISSING"),
    (KILL, 409, "Cannot kill container: box: container 4f is not running", "NOT_RUNNING"),
    (KILL, 500, "container 4f is not running", "NOT_RUNNING"),
    (
        KILL,
        500,
        "can only kill running containers. 4f is in state exited: container state improper",
        "NOT_RUNNING",
    ),
    (KILL, 500, "sending signal to container 4f: no such process", "NOT_RUNNING"),
    (KILL, 500, "OCI runtime error", "OTHER"),
    (EXEC, 404, "No such container: box", "MISSING"),
    (EXEC, 409, "Container 4f is not running", "NOT_RUNNING"),
    (
        EXEC,
        409,
        "can only create exec sessions on running containers: container state improper",
        "NOT_RUNNING",
    ),
    (EXEC_START, 409, "Container 4f is not running", "NOT_RUNNING"),
    (EXEC_START, 500, "something else", "OTHER"),
    # A container that can never start.
    (START, 500, "unable to find user nobody: no matching entries in passwd file", "CANNOT_START"),
    (START, 500, "unable to find group none: no matching entries in group file", "CANNOT_START"),
    (START, 400, "OCI runtime create failed: runc create failed: exec: chdir to cwd failed", "CANNOT_START"),
    (START, 500, "crun: chdir to `/nope`: No such file or directory: OCI runtime error", "CANNOT_START"),
    (START, 500, "mkdir /etc/hostname/a: not a directory", "CANNOT_START"),
    (START, 400, "exec /trainshed/init: exec format error", "CANNOT_START"),
    (START, 500, "crun: open executable: Exec format error: OCI runtime error", "CANNOT_START"),
    (POD_CREATE, 500, "setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=0", "CANNOT_START"),
    (START, 500, 'could not select device driver "nvidia" with capabilities: [[gpu]]', "CANNOT_START"),
    (START, 500, "mount nfs: access denied by server while mounting host:/share", "CANNOT_START"),
    (START, 500, "mount: unknown filesystem type 'nfs'", "CANNOT_START"),
    (
        START,
        500,
        "IPAM error: requested ip address 10.0.0.2 is already allocated to container ID 4f",
        "ADDRESS_TAKEN",
    ),
    (START, 500, "unable to find network with name or ID net: network not found", "NETWORK_MISSING"),
    (START, 404, "No such container: box", "MISSING"),
    # Networks and volumes.
    (NETWORK, 409, "network with name net already exists", "NAME_TAKEN"),
    (POD_NETWORK, 500, "network name net already used: network already exists", "NAME_TAKEN"),
    (NETWORK, 403, "Pool overlaps with other one on this address space", "SUBNET_TAKEN"),
    (
        POD_NETWORK,
        500,
        "subnet 10.0.0.0/27 is already used on the host or by another config",
        "SUBNET_TAKEN",
    ),
    (POD_NETWORK, 500, "netavark is not installed", "OTHER"),
    (CONNECT, 404, 'no container with name or ID "anchor" found: no such container', "CONTAINER_MISSING"),
    (CONNECT, 404, "unable to find network with name or ID net: network not found", "NETWORK_MISSING"),
    (POD_CREATE, 500, "unable to find network with name or ID net: network not found", "NETWORK_MISSING"),
    ("GET /libpod/networks/net/json", 404, "unable to find network with name or ID net", "MISSING"),
    ("DELETE /networks/net", 404, "network net not found", "MISSING"),
    ("DELETE /networks/net", 403, "network net has active endpoints", "OTHER"),
    (VOLUME, 409, "a volume of that name is there with other options", "NAME_TAKEN"),
    (VOLUME, 500, "volume with name v already exists: volume already exists", "NAME_TAKEN"),
    (VOLUME, 500, "no such driver", "OTHER"),
    ("DELETE /volumes/v", 404, "get v: no such volume", "MISSING"),
    ("DELETE /volumes/v", 409, "remove v: volume is in use", "OTHER"),
    # Images.
    ("GET /images/team/a:1/json", 404, "No such image: team/a:1", "MISSING"),
    (TAG_IMAGE, 404, "team/a:1: image not known", "MISSING"),
    (TAG_IMAGE, 409, "conflict: it names another image", "IN_USE"),
    (DELETE_IMAGE, 409, "conflict: unable to remove repository reference (must force)", "IN_USE"),
    (DELETE_IMAGE, 500, "image used by 4f: image is in use by a container", "IN_USE"),
    (DELETE_IMAGE, 404, "No such image: in use:1", "MISSING"),
    (LOAD, 500, "payload does not match any of the supported image formats", "NO_ARCHIVE"),
    (LOAD, 400, "archive/tar: invalid tar header", "NO_ARCHIVE"),
    (LOAD, 500, "unexpected EOF", "NO_ARCHIVE"),
    (LOAD, 500, "open /var/tmp/x/manifest.json: no such file or directory", "NO_ARCHIVE"),
    (LOAD, 500, "no space left on device", "OTHER"),
]


def fault(call: str, status: int, message: str) -> EngineFault:
    verb, _, path = call.partition(" ")
    return fault_of(verb, path, status, json.dumps({"message": message}).encode())


@pytest.mark.parametrize(("call", "status", "message", "kind"), TABLE)
def test_the_refusals_of_both_engines_have_kinds(call: str, status: int, message: str, kind: str):
    answer = fault(call, status, message)
    assert (answer.kind, answer.message) == (FaultKind[kind], message)


@pytest.mark.parametrize(
    ("call", "message", "passing"),
    [
        (START, "write /run/x: No space left on device", True),
        (CREATE, "fork/exec crun: cannot allocate memory", True),
        (START, "resource temporarily unavailable", True),
        (START, "too many open files", True),
        (START, "context deadline exceeded", True),
        (START, "the network answers no more: timed out", True),
        (START, "it is broken", False),
        (POD_NETWORK, "route ip+net: no such network interface", True),
        (POD_NETWORK, "timeout", False),
        (DELETE_IMAGE, "container 4f does not exist in database: no such container", True),
        (DELETE_IMAGE, "container 4f is being removed", True),
        (DELETE_IMAGE, "removal of container 4f is already in progress", True),
        (DELETE_IMAGE, "image is in use by a container", False),
        ("DELETE /containers/box", "removal of container box is already in progress", False),
    ],
)
def test_what_passes_by_itself_is_told_beside_the_kind(call: str, message: str, passing: bool):
    assert fault(call, 500, message).passing is passing


def test_a_container_that_vanishes_while_its_image_is_removed_is_both_missing_and_passing():
    answer = fault(DELETE_IMAGE, 404, "no such container 4f")
    assert (answer.kind, answer.passing) == (FaultKind.MISSING, True)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"message": "a", "cause": "b"}', "a"),
        (b'{"message": "", "cause": "b"}', "b"),
        (b'{"message": ""}', "The container engine answers 500."),
        (b"page not found\n", "page not found"),
        (b'["a"]', '["a"]'),
        (b"x" * 600, "x" * 500),
        (b"", "The container engine answers 500."),
    ],
)
def test_the_message_is_what_the_engine_says_wherever_it_says_it(body: bytes, message: str):
    assert fault_of("GET", "/info", 500, body).message == message


def test_what_differs_at_each_try_is_left_out_of_the_stable_message():
    number = "4f" * 32
    answer = fault(START, 500, f"cannot start {number}:\n no rootfs for container {number[:12]}")
    assert answer.stable_message == "cannot start : no rootfs"


def test_each_kind_of_failure_with_an_image_has_its_advice():
    words = {
        "no space left on device": ImageFaultKind.DISK_FULL,
        "no matching manifest for linux/arm64/v8": ImageFaultKind.OTHER_PROCESSOR,
        "pull access denied for nope": ImageFaultKind.PRIVATE_OR_UNKNOWN,
        "unauthorized: authentication required": ImageFaultKind.CREDENTIALS,
        "toomanyrequests": ImageFaultKind.RATE_LIMIT,
        "manifest unknown": ImageFaultKind.UNKNOWN_NAME,
        "server gave HTTP response to HTTPS client": ImageFaultKind.PLAIN_HTTP,
        "x509: unknown authority": ImageFaultKind.CERTIFICATE,
        "connect: connection refused": ImageFaultKind.UNREACHABLE,
        "pinging container registry localhost: connection refused": ImageFaultKind.LOCAL_NAME,
        "something else": ImageFaultKind.OTHER,
    }
    assert {text: image_fault(text) for text in words} == words
    assert set(words.values()) == set(ImageFaultKind)
    assert len({image_failure("It failed", text).verdict.advice for text in words}) == len(words)


@pytest.mark.parametrize(
    ("output", "refusal", "no_program"),
    [
        (b'OCI runtime exec failed: exec: "sh": executable file not found in $PATH', True, True),
        (b"crun: executable file `sh` not found in $PATH: No such file or directory", True, False),
        (b"OCI runtime exec failed: exec failed: permission denied", True, False),
        (b"$ ", False, False),
    ],
)
def test_a_program_that_the_engine_did_not_start_is_known_by_its_output(
    output: bytes, refusal: bool, no_program: bool
):
    assert (is_exec_refusal(output), says_no_such_program(output)) == (refusal, no_program)
