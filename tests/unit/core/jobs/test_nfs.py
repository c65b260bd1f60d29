"""Which NFS mounts a pool may have: all that is wrong is told, and nothing gets into a mount's options."""

import pytest

from trainshed.core.jobs.nfs import NfsMount, faults, folder_fault


def mount(server: str = "10.0.0.2", path: str = "/export", mount_point: str = "data") -> NfsMount:
    return NfsMount(server=server, path=path, mount_point=mount_point)


@pytest.mark.parametrize("server", ["10.0.0.2", "nfs", "nfs.example.com", "fe80::1", "a-1.b"])
@pytest.mark.parametrize("point", ["data", "my.data_1", "a/b", "A-B"])
def test_what_vertex_takes_is_taken(server: str, point: str):
    one = mount(server, "/export/größe 1", point)
    assert list(faults([one])) == []
    assert one.target == f"/mnt/nfs/{point}"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (mount(server=""), "server"),
        (mount(server="a,soft"), "server"),
        (mount(server="a b"), "server"),
        (mount(server="-a"), "server"),
        (mount(path=""), "path"),
        (mount(path="export"), "path"),
        (mount(path="/a/../b"), "path"),
        (mount(path="/a,nolock"), "path"),
        (mount(path="/a\n"), "path"),
        (mount(mount_point=""), "mount_point"),
        (mount(mount_point="/proc/x"), "mount_point"),
        (mount(mount_point="a//b"), "mount_point"),
        (mount(mount_point="a/../../etc"), "mount_point"),
        (mount(mount_point="."), "mount_point"),
    ],
)
def test_each_wrong_word_is_told_with_its_field(wrong: NfsMount, field: str):
    [(number, told, sentence)] = faults([wrong])
    assert (number, told) == (0, field)
    assert sentence.endswith(".")


def test_all_that_is_wrong_is_told_at_once():
    told = [(number, field) for number, field, _ in faults([mount(), mount(), mount("", "", "")])]
    assert told == [(1, "mount_point"), (2, "server"), (2, "path"), (2, "mount_point")]


def test_a_path_is_a_place_of_its_own():
    one = mount(mount_point="/tmp/imagenet")
    assert list(faults([one])) == []
    assert one.target == "/tmp/imagenet"
    (told,) = faults([mount(mount_point="/mnt/nfs/data"), mount(mount_point="data")])
    assert told[:2] == (1, "mount_point")


@pytest.mark.parametrize(
    "path", ["/", "/a/..", "/a//b", "/a b", "/gcs", "/gcs/x", "/.trainshed/init", "/dev/shm"]
)
def test_places_with_a_meaning_of_their_own_are_not_given_away(path: str):
    assert folder_fault(path)


@pytest.mark.parametrize("path", ["/data", "/home/me/.cache", "/gcsfuse", "/var/lib/x-1"])
def test_other_places_are(path: str):
    assert folder_fault(path) == ""
