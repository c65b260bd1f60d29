"""The promises of `NamedSecretStore`, for the files; what a kill leaves of a new key."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.core.errors import AlreadyExists, NotFound, Unavailable
from trainshed.core.jobs.named_secret import NamedSecret
from trainshed.store import named_secret_files, secret_cipher, secret_files
from trainshed.store.named_secret_files import NamedSecretFiles
from trainshed.store.secret_cipher import SecretCipher
from trainshed.store.secret_files import SecretFiles

NOW = datetime(2026, 11, 1, tzinfo=UTC)
VALUE = "hf-4uKZsWmQ0tXy"  # in no other text
KEPT = {0: {"HF_TOKEN": f"{VALUE} of a job"}}


class Home:
    """The stores of a server that has just started there."""

    def __init__(self, path: Path) -> None:
        self.path, self.key = path, path / "secret-key.json"
        cipher = SecretCipher(self.key, path / "secrets")
        self.jobs = SecretFiles(path / "secrets", cipher)
        self.named = NamedSecretFiles(path / "secrets" / "named", cipher, self.jobs.reseal)

    async def fill(self) -> None:
        for project, name in (("p", "a"), ("p", "b"), ("q", "a")):
            await self.named.create(NamedSecret(project=project, id=name, created_at=NOW, created_by="ann"))
            await self.named.set(project, name, f"{VALUE} {project} {name}", NOW, "bob")
        await self.jobs.keep("1", KEPT)

    async def check_all(self) -> None:
        for project, name in (("p", "a"), ("p", "b"), ("q", "a")):
            assert await self.named.value(project, name, NOW) == f"{VALUE} {project} {name}"
        assert await self.jobs.read("1") == KEPT

    def key_ids(self) -> list[str]:
        return [row["id"] for row in json.loads(self.key.read_text())["keys"]]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


async def test_a_secret_has_the_value_that_was_set_last_and_tells_who_set_it(home: Home) -> None:
    await home.fill()
    await home.named.set("p", "a", "newer\nß", NOW + timedelta(hours=1), "eve")
    again = Home(home.path)
    assert await again.named.value("p", "a", NOW) == "newer\nß"
    known = await again.named.get("p", "a")
    assert (known.version, known.created_by, known.updated_by) == (2, "ann", "eve")
    assert [secret.id for secret in await again.named.all("p")] == ["a", "b"]
    assert await again.named.all("nobody") == ()


async def test_what_is_not_there_is_not_found_and_a_name_is_taken_once(home: Home) -> None:
    await home.fill()
    with pytest.raises(AlreadyExists):
        await home.named.create(NamedSecret(project="p", id="a", created_at=NOW))
    for name in ("gone", "../a", "", ".."):
        with pytest.raises(NotFound):
            await home.named.value("p", name, NOW)
        with pytest.raises(NotFound):
            await home.named.remove("p", name)
    await home.named.create(NamedSecret(project="p", id="empty", created_at=NOW))
    with pytest.raises(NotFound, match="has no value yet"):
        await home.named.value("p", "empty", NOW)
    await home.named.remove("p", "a")
    with pytest.raises(NotFound):
        await home.named.get("p", "a")


async def test_projects_with_odd_or_long_names_have_secrets_of_their_own(home: Home) -> None:
    projects = ("example.com:lab", "..", "a/b", "x" * 300, "x" * 301)
    for project in projects:
        await home.named.create(NamedSecret(project=project, id="a", created_at=NOW))
        await home.named.set(project, "a", project, NOW, "")
    for project in projects:
        assert await home.named.value(project, "a", NOW) == project
    assert {path.name for path in home.path.iterdir()} == {"secrets", "secret-key.json"}


async def test_a_use_is_noted_to_the_minute(home: Home) -> None:
    await home.fill()
    for seconds, noted in ((0, 0), (30, 0), (90, 90)):
        await home.named.value("p", "a", NOW + timedelta(seconds=seconds))
        assert (await home.named.get("p", "a")).used_at == NOW + timedelta(seconds=noted)


async def test_no_file_has_a_value_in_clear_and_all_are_closed_to_others(home: Home) -> None:
    await home.fill()
    for file in (path for path in home.path.rglob("*") if path.is_file()):
        assert VALUE.encode() not in file.read_bytes(), file
        assert file.stat().st_mode & 0o777 == 0o600, file


async def test_a_sealed_value_put_in_the_place_of_another_is_refused(home: Home) -> None:
    await home.fill()
    places = [home.path / "secrets" / "named" / "p-p" / f"{name}.json" for name in ("a", "b")]
    stored = [json.loads(place.read_text()) for place in places]
    places[0].write_text(json.dumps({**stored[0], "sealed": stored[1]["sealed"]}))
    with pytest.raises(Unavailable, match="projects/p/secrets/a cannot be read: it was changed"):
        await home.named.value("p", "a", NOW)


async def test_files_in_clear_of_older_releases_are_read_and_sealed_by_a_rotation(home: Home) -> None:
    (home.path / "secrets").mkdir()
    (home.path / "secrets" / "7.json").write_text(json.dumps({"0": {"HF_TOKEN": VALUE}}))
    assert await home.jobs.read("7") == {0: {"HF_TOKEN": VALUE}}
    assert await home.named.rotate() == 1
    assert VALUE not in (home.path / "secrets" / "7.json").read_text()
    assert await Home(home.path).jobs.read("7") == {0: {"HF_TOKEN": VALUE}}


async def test_a_rotation_seals_everything_anew_and_keeps_one_key_for_backups(home: Home) -> None:
    await home.fill()
    first = home.key_ids()
    assert await home.named.rotate() == 4
    second = home.key_ids()
    assert second[1:] == first
    await home.named.rotate()
    assert len(home.key_ids()) == 2 and first[0] not in home.key_ids()
    await home.check_all()
    await Home(home.path).check_all()


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("renamed", [False, True])
async def test_a_kill_at_any_write_of_a_rotation_loses_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, renamed: bool
) -> None:
    await home.fill()
    whole = secret_cipher.write_whole
    for survived in range(7):
        left = survived

        def dying(file: Path, text: str) -> None:
            nonlocal left
            if left or renamed:
                whole(file, text)
            if not left:
                raise Killed
            left -= 1

        for module in (secret_cipher, secret_files, named_secret_files):
            monkeypatch.setattr(module, "write_whole", dying)
        died = False
        try:
            Home(home.path).named._rotate()
        except Killed:
            died = True
        for module in (secret_cipher, secret_files, named_secret_files):
            monkeypatch.setattr(module, "write_whole", whole)
        assert died == (survived < 6)
        await Home(home.path).check_all()
    await Home(home.path).named.rotate()
    assert len(home.key_ids()) == 2
    await Home(home.path).check_all()


async def test_a_lost_key_is_said_to_be_so_and_never_replaced(home: Home) -> None:
    await home.fill()
    kept = home.key.read_text()
    home.key.unlink()
    after = Home(home.path)
    for work in (after.named.value("p", "a", NOW), after.named.set("p", "a", "x", NOW, "")):
        with pytest.raises(
            Unavailable, match=r"secret-key\.json with the keys of secrets is gone: put it back"
        ):
            await work
    with pytest.raises(Unavailable, match="put it back from a backup"):
        await after.jobs.keep("2", KEPT)
    assert not home.key.exists()
    home.key.write_text("{}")
    with pytest.raises(Unavailable, match="cannot be read from"):
        await Home(home.path).jobs.read("1")
    home.key.write_text(kept)
    await Home(home.path).check_all()
