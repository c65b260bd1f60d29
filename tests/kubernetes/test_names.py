"""Names of the cluster for tests: what exists, what exists without an address, and what does not exist."""

import struct
from typing import Any

import pytest

from scripts.cluster_parts.names import Records, reply

NO_SUCH_NAME = 3
A, AAAA = 1, 28


def service(address: str) -> dict[str, Any]:
    return {"spec": {"clusterIP": address}}


def endpoints(*rows: dict[str, str]) -> dict[str, Any]:
    return {"subsets": [{"addresses": list(rows)}]}


@pytest.fixture
def records() -> Records:
    host = {"ip": "10.1.0.2", "hostname": "a"}
    return Records(
        services={
            ("lab", "web"): service("10.9.0.7"),
            ("lab", "gang"): service("None"),
            ("lab", "empty"): service("None"),
        },
        endpoints={
            ("lab", "web"): endpoints({"ip": "10.1.0.9"}),
            ("lab", "gang"): endpoints(host, {"ip": "10.1.0.3"}),
            ("lab", "empty"): {},
        },
    )


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("web.lab.svc.cluster.local", ["10.9.0.7"]),
        ("WEB.lab.svc.cluster.local.", ["10.9.0.7"]),
        ("gang.lab.svc.cluster.local", ["10.1.0.2", "10.1.0.3"]),
        ("a.gang.lab.svc.cluster.local", ["10.1.0.2"]),
        ("10-1-0-3.gang.lab.svc.cluster.local", ["10.1.0.3"]),
    ],
)
def test_services_and_the_hosts_of_headless_ones_have_addresses(
    records: Records, name: str, addresses: list[str]
):
    assert records.look_up(name) == addresses


@pytest.mark.parametrize("name", ["lab.svc.cluster.local", "svc.cluster.local", "cluster.local"])
def test_what_only_other_names_end_with_exists_without_an_address(records: Records, name: str):
    assert records.look_up(name) == []


@pytest.mark.parametrize(
    "name",
    [
        "nobody.lab.svc.cluster.local",
        "web.other.svc.cluster.local",
        "other.svc.cluster.local",
        "empty.lab.svc.cluster.local",
        "b.gang.lab.svc.cluster.local",
        "a.web.lab.svc.cluster.local",
        "x.a.gang.lab.svc.cluster.local",
        "example.com",
        "web.lab.svc.cluster.local.lab.svc.cluster.local",
    ],
)
def test_everything_else_does_not_exist(records: Records, name: str):
    assert records.look_up(name) is None


def query(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def parts(packet: bytes) -> tuple[int, int, int]:
    """Its number, its code, and how many answers it has."""
    number, flags, _, answers = struct.unpack(">HHHH", packet[:8])
    return number, flags & 0xF, answers


def test_a_query_for_another_kind_of_record_is_answered_with_none(records: Records):
    name = "gang.lab.svc.cluster.local"
    assert parts(reply(query(name, A), records.look_up)) == (77, 0, 2)
    assert parts(reply(query(name, AAAA), records.look_up)) == (77, 0, 0)
    assert parts(reply(query(f"x.{name}", AAAA), records.look_up)) == (77, NO_SUCH_NAME, 0)


def test_an_answer_fits_into_one_packet(records: Records):
    rows = [{"ip": f"10.1.{number // 250}.{number % 250}"} for number in range(1000)]
    records.endpoints["lab", "gang"] = endpoints(*rows)
    assert len(reply(query("gang.lab.svc.cluster.local", A), records.look_up)) <= 2000
