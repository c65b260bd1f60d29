"""The directory of accounts in its file."""

import json
import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.builders import T0
from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountChange,
    AccountKind,
    Directory,
    ProviderIdentity,
    RoleGrant,
)
from trainshed.core.accounts.role import EVERYWHERE, Role
from trainshed.core.errors import Invalid, Unavailable
from trainshed.identity.directory_file import DirectoryFile

TOKEN = AccessToken(
    id="1",
    account="ann",
    title="laptop",
    digest="ab",
    created_at=T0,
    expires_at=T0 + timedelta(days=1),
    role=Role.VIEWER,
    projects=("p1",),
)


def filled(directory: Directory) -> Directory:
    directory = directory.with_account(Account(name="ann", display_name="Ann Ä", created_at=T0))
    directory = directory.with_account(Account(name="bot", kind=AccountKind.SERVICE_ACCOUNT, created_at=T0))
    directory = directory.with_identity("ann", ProviderIdentity("https://id.example.org", "7"))
    directory = directory.with_token(replace(TOKEN, id="2", is_session=True))
    directory = directory.with_change("bot", AccountChange(is_disabled=True)).with_group(
        "vision", ["ann", "bot"]
    )
    directory = directory.with_grants("p1", [RoleGrant("p1", Role.USER, "group:vision")])
    return directory.with_grants(EVERYWHERE, [RoleGrant(EVERYWHERE, Role.ADMIN, "user:ann")]).with_token(
        TOKEN
    )


def test_the_next_server_knows_all_of_it(tmp_path: Path):
    path = tmp_path / "accounts.json"
    made = DirectoryFile(path).change(filled)
    assert DirectoryFile(path).directory == made == filled(Directory())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "secret" not in path.read_text()


def test_a_server_without_accounts_has_no_file(tmp_path: Path):
    file = DirectoryFile(tmp_path / "accounts.json")
    file.change(lambda directory: directory)
    assert not any(tmp_path.iterdir())


def test_a_change_that_is_refused_changes_nothing(tmp_path: Path):
    file = DirectoryFile(tmp_path / "accounts.json")
    before = file.change(filled)
    with pytest.raises(Invalid):
        file.change(lambda directory: directory.with_group("speech", ["eve"]))
    assert file.directory == before == DirectoryFile(tmp_path / "accounts.json").directory


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 2}'])
def test_a_file_that_cannot_be_read_stops_the_server_and_is_named(tmp_path: Path, text: str):
    path = tmp_path / "accounts.json"
    path.write_text(text)
    with pytest.raises(Unavailable, match=r"accounts\.json"):
        DirectoryFile(path)


def test_a_draft_that_a_kill_left_is_no_directory(tmp_path: Path):
    path = tmp_path / "accounts.json"
    made = DirectoryFile(path).change(filled)
    (tmp_path / "accounts.json.new").write_text(json.dumps({"half": True})[:5])
    assert DirectoryFile(path).directory == made
    DirectoryFile(path).change(lambda directory: directory.without_account("bot"))
    assert "bot" not in DirectoryFile(path).directory.accounts
