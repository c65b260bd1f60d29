"""What a program wrote is read by the server, which may read more than the program: no link leads it away."""

import os
from pathlib import Path

import pytest

from trainshed.backends.machine import written
from trainshed.core.errors import Conflict


async def test_a_folder_that_was_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    view, secret = tmp_path / "view", tmp_path / "secret"
    folder = view / "upper" / "bucket" / "folder"
    for place in (folder, secret):
        place.mkdir(parents=True)
    (secret / "token").write_bytes(b"secret")
    os.link(secret / "token", folder / "token")  # the same file, so that only the way to it differs
    [file] = written.scan(view).files
    assert b"".join([chunk async for chunk in written.read(file)]) == b"secret"
    (folder / "token").unlink()
    folder.rmdir()
    folder.symlink_to(secret)
    with pytest.raises(Conflict, match="token is gone"):
        await anext(aiter(written.read(file)))
    assert written.scan(view).files == ()
