"""Keys that are made once, ports that stay, and identities that may no more than they need."""

import contextlib
import os
import socket
from pathlib import Path

import pytest

from trainshed.buckets import seaweed_keys
from trainshed.buckets.port_claims import PortClaims
from trainshed.buckets.seaweed_keys import identities, job_variables, keys_of, ports_of


@pytest.fixture
def claims():
    claims = PortClaims()
    yield claims
    claims.close()


def test_servers_that_begin_together_never_choose_the_same_port(tmp_path: Path, claims: PortClaims) -> None:
    others = PortClaims()
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    one, other = ports_of(folders[0], claims), ports_of(folders[1], others)
    assert not {one.s3, one.filer, one.volume, one.master} & {
        other.s3,
        other.filer,
        other.volume,
        other.master,
    }
    others.close()


def test_keys_and_ports_stay_over_a_restart_and_keys_are_for_their_owner(
    tmp_path: Path, claims: PortClaims
) -> None:
    keys, ports = keys_of(tmp_path), ports_of(tmp_path, claims)
    assert (keys_of(tmp_path), ports_of(tmp_path, claims)) == (keys, ports)
    assert keys.own != keys.jobs
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0


def test_a_port_that_somebody_else_has_now_is_not_used(tmp_path: Path, claims: PortClaims) -> None:
    ports = ports_of(tmp_path, claims)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # a test beside this one may have been faster: as good
            taken.bind(("127.0.0.1", ports.s3))
            taken.listen()
        assert ports_of(tmp_path, claims).s3 != ports.s3


def test_a_port_beside_which_another_user_has_left_a_socket_is_not_used(
    tmp_path: Path, claims: PortClaims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seaweed_keys, "SOCKETS", tmp_path)
    ports = ports_of(tmp_path, claims)
    (tmp_path / f"seaweedfs-master-grpc-{ports.master + 10_000}.sock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert ports_of(tmp_path, claims).master != ports.master


def test_a_file_that_was_cut_off_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"own": ["A')
    assert keys_of(tmp_path).own.secret


def test_jobs_may_use_the_objects_of_the_buckets_and_nothing_else(tmp_path: Path) -> None:
    _, jobs = identities(keys_of(tmp_path), ("training",))["identities"]  # pyright: ignore[reportGeneralTypeIssues]
    assert jobs["actions"] == ["Read:training", "Write:training", "List:training", "Tagging:training"]


def test_jobs_find_each_bucket_whose_name_can_be_part_of_a_variable(tmp_path: Path) -> None:
    env = job_variables(keys_of(tmp_path).jobs, "http://127.0.0.1:1", ("training", "my-data"))
    assert env["trainingbucket"] == "training"
    assert all(name.isidentifier() for name in env)
    assert env["endpoint_url"] == env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
