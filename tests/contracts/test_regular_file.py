"""What a job may have put in place of a file: refused at once, and never waited for."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from trainshed.disk.regular_file import open_below, open_regular, read_regular, write_regular


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # zero
    except PermissionError:
        pytest.skip("a device needs the right to make one")


def link(path: Path) -> None:
    path.with_name("other").write_bytes(b"of somebody else")
    path.symlink_to("other")


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [fifo, bound_socket, device, link, folder])
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_TRUNC])
def test_what_is_not_a_regular_file_is_refused(make: Callable[[Path], None], flags: int, tmp_path: Path):
    make(tmp_path / "file")
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError):
        open_regular(tmp_path / "file", flags | os.O_CREAT if flags else flags)
    assert set(os.listdir("/proc/self/fd")) == before
    if make is link:
        assert (tmp_path / "other").read_bytes() == b"of somebody else"


def test_a_file_is_read_from_anywhere_and_never_beyond_the_bound(tmp_path: Path):
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    os.truncate(file, 1 << 40)
    assert read_regular(file, 4) == b"0123"
    assert read_regular(file, 4, offset=8) == b"89\0\0"


def test_a_file_is_written_anew_or_behind_what_is_there(tmp_path: Path):
    file = tmp_path / "file"
    write_regular(file, b"first")
    write_regular(file, b" and more", os.O_APPEND)
    assert file.read_bytes() == b"first and more"
    write_regular(file, b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_is_opened_below_a_folder_that_is_open(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"here")
    place = os.open(tmp_path, os.O_RDONLY)
    handle = open_regular("file", dir_fd=place)
    assert os.read(handle, 10) == b"here"
    os.close(handle)
    os.close(place)


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    secret, top = tmp_path / "secret", tmp_path / "top"
    for folder in (secret, top / "a" / "b"):
        folder.mkdir(parents=True)
        (folder / "token").write_bytes(b"x")
    handle = open_below(top, "a/b/token")
    assert os.read(handle, 9) == b"x"
    os.close(handle)
    (top / "a" / "link").symlink_to(secret)
    with pytest.raises(OSError, match="Not a directory"):
        open_below(top, "a/link/token")
