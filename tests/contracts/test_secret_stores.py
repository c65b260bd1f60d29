"""The promises of `core.jobs.secret_port.SecretStore`, for the files and for the store in memory."""

from pathlib import Path

import pytest

from trainshed.core.errors import Unavailable
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.store.secret_cipher import SecretCipher
from trainshed.store.secret_files import SecretFiles
from trainshed.testing.secrets import MemorySecrets

KEPT = {0: {"HF_TOKEN": "x"}, 2: {"MINE": "y\nß"}}


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SecretStore:
    return files(tmp_path) if request.param == "files" else MemorySecrets()


def files(home: Path) -> SecretFiles:
    return SecretFiles(home / "secrets", SecretCipher(home / "secret-key.json", home / "secrets"))


async def test_what_was_kept_is_read_until_it_is_removed(store: SecretStore):
    await store.keep("1", KEPT)
    assert (store.has("1"), await store.read("1"), await store.jobs()) == (True, KEPT, {"1"})
    await store.remove("1")
    await store.remove("1")
    assert (store.has("1"), await store.read("1"), await store.jobs()) == (False, {}, frozenset())


async def test_nothing_is_known_of_another_job(store: SecretStore):
    assert (store.has("1"), await store.read("1"), await store.jobs()) == (False, {}, frozenset())


async def test_files_outlive_the_store_and_are_closed_to_others(tmp_path: Path):
    await files(tmp_path).keep("1", KEPT)
    assert await files(tmp_path).read("1") == KEPT
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["1.json"]
    assert (tmp_path / "secrets" / "1.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


async def test_a_damaged_file_is_said_to_be_so(tmp_path: Path):
    store = files(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "1.json").write_text("[]")
    with pytest.raises(Unavailable, match=r"secrets of job 1 cannot be read from .*1\.json"):
        await store.read("1")
