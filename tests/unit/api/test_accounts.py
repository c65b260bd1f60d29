"""What the methods of accounts, roles and tokens let nobody do by mistake or by a token with fewer rights."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builders import T0
from tests.id_tokens import StepClock
from tests.unit.control.test_notices import Receivers
from tests.unit.core.test_notice import a_channel
from trainshed.api.accounts import AccountHandlers
from trainshed.api.call import Call
from trainshed.core.accounts.directory import Account, AccountKind
from trainshed.core.accounts.permission import OWNER, Principal
from trainshed.core.errors import AlreadyExists, Forbidden, Invalid, Unavailable
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.open import NoAuthentication
from trainshed.service.accounts import AccountService
from trainshed.service.notices import NoticeService
from trainshed.testing.notices import MemoryNoticeStore
from trainshed.testing.secrets import MemorySecrets


def unused(*_: object) -> Any:
    raise AssertionError("nothing is sent")


class Office:
    """The methods, and one account."""

    def __init__(self, home: Path) -> None:
        self.clock, store = StepClock(), DirectoryFile(home / "accounts.json")
        self.notices = MemoryNoticeStore()
        forget = NoticeService(
            self.notices, MemorySecrets(), self.clock, Receivers(), deliver=unused, resume=unused
        ).remove_all_of
        self.service = AccountService(store, AuditFiles(home / "audit"), self.clock, forget=forget)
        self.people = AccountTokens(NoAuthentication(), store, self.clock)
        self.handlers = AccountHandlers(self.service)
        store.change(lambda directory: directory.with_account(Account(name="ann", created_at=T0)))

    def call(
        self, body: Mapping[str, object] | None = None, principal: Principal = OWNER, **path: str
    ) -> Call:
        return Call(path=path, query={}, body=dict(body or {}), headers={}, base_url="", principal=principal)

    async def add_channels(self, *users: str) -> None:
        for user in {*users} - {*self.users_of_channels()}:
            await self.notices.insert_channel(a_channel(id=user, user=user))

    def users_of_channels(self) -> list[str]:
        return [channel.user for channel in self.notices.channels.values()]

    async def token(self, **wanted: object) -> tuple[Any, Principal]:
        """A new token of Ann's, and who has it."""
        made: Any = await self.handlers.make_token(self.call({"account": "ann", **wanted}))
        principal = self.people.principal(made["id"])
        assert principal is not None
        return made, principal


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


@pytest.mark.parametrize("project", ["-", "*", "a b"])
async def test_what_is_no_project_gets_neither_roles_nor_tokens(office: Office, project: str):
    policy = {"policy": {"bindings": [{"role": "viewer", "members": ["user:ann"]}]}}
    with pytest.raises(Invalid, match="--everywhere"):
        await office.handlers.set_policy(office.call(policy, project=project))
    with pytest.raises(Invalid, match="is not the name of a project"):
        await office.token(projects=["vision", project])
    assert not office.service.directory.grants and not office.service.directory.tokens


async def test_nobody_has_the_notice_channels_of_who_had_the_account_before(office: Office):
    handlers, call = office.handlers, office.call(account="ann")
    for leave in (handlers.unlink, handlers.delete):
        await office.add_channels("ann", "zoe")
        await leave(call)
        assert office.users_of_channels() == ["zoe"]
    # As a server leaves it that died after it had removed the account.
    await office.add_channels("ann")
    await handlers.create(office.call({"name": "ann"}))
    assert office.users_of_channels() == ["zoe"]


async def test_what_was_kept_for_a_name_is_gone_before_it_has_another_owner(office: Office, tmp_path: Path):
    """Wherever a server dies: here it cannot write the accounts."""
    begin = {"ann": office.handlers.unlink, "bob": office.handlers.create}
    await office.add_channels(*begin)
    await office.token()
    shutil.rmtree(tmp_path)
    for name, method in begin.items():
        with pytest.raises(Unavailable):
            await method(office.call({"name": name}, account=name))
    assert office.users_of_channels() == []


async def test_who_adds_an_account_that_is_there_takes_no_channels_from_it(office: Office):
    await office.add_channels("ann")
    with pytest.raises(AlreadyExists):
        await office.handlers.create(office.call({"name": "ann"}))
    assert office.users_of_channels() == ["ann"]


async def changed(office: Office, body: Mapping[str, object], mask: str = "") -> Account:
    call = office.call(body, account="ann")
    await office.handlers.update(replace(call, query={"updateMask": mask} if mask else {}))
    return office.service.directory.account("ann")


async def test_a_change_of_an_account_changes_what_it_names_and_nothing_else(office: Office):
    assert (await changed(office, {"disabled": True})).is_disabled
    renamed = await changed(office, {"displayName": "Ann B.", "name": "ann", "kind": "user"})
    assert renamed.is_disabled and renamed.display_name == "Ann B."
    assert (await changed(office, {})).is_disabled
    assert (await changed(office, {"disabled": False}, "displayName")).is_disabled
    assert office.service.directory.account("ann").display_name == ""
    assert not (await changed(office, {"disabled": False, "kind": "serviceAccount"}, "disabled")).is_disabled
    assert (await changed(office, {"display_name": "Ann"}, "display_name")).display_name == "Ann"


@pytest.mark.parametrize(
    ("body", "mask", "field", "words"),
    [
        ({"name": "eve"}, "", "name", "is 'ann' and cannot become 'eve': leave it out"),
        ({"kind": "serviceAccount"}, "", "kind", "is 'user' and cannot become 'serviceAccount': leave it"),
        ({"roles": []}, "", "roles", "Unknown name"),
        ({"kind": "user"}, "disabled,kind", "update_mask", "names 'kind', which cannot change"),
        ({}, "nothing", "update_mask", "names 'nothing', which cannot change"),
    ],
)
async def test_what_cannot_change_is_refused_with_its_name(
    office: Office, body: Mapping[str, object], mask: str, field: str, words: str
):
    before = office.service.directory
    with pytest.raises(Invalid) as refused:
        await changed(office, {"disabled": True, **body}, mask)
    [violation] = refused.value.violations
    assert violation.field == field and words in violation.description
    assert office.service.directory == before


@pytest.mark.parametrize("limits", [{"role": "viewer"}, {"projects": ["vision"]}])
async def test_a_token_with_fewer_rights_sees_and_revokes_itself_alone(
    office: Office, limits: dict[str, object]
):
    full, _ = await office.token()
    made, principal = await office.token(**limits)
    listed: Any = await office.handlers.tokens(office.call(principal=principal))
    assert [item["id"] for item in listed["tokens"]] == [made["id"]]
    with pytest.raises(Forbidden, match="has no token"):
        await office.handlers.revoke(office.call(principal=principal, token=full["id"]))
    await office.handlers.revoke(office.call(principal=principal, token=made["id"]))
    assert list(office.service.directory.tokens) == [full["id"]]


async def test_a_token_with_all_rights_sees_and_revokes_all_of_its_account_and_no_others(office: Office):
    await office.service.add("bob", AccountKind.USER)
    bobs: Any = await office.handlers.make_token(office.call({"account": "bob"}))
    limited, _ = await office.token(role="viewer")
    full, principal = await office.token()
    listed: Any = await office.handlers.tokens(office.call(principal=principal))
    assert [item["id"] for item in listed["tokens"]] == [limited["id"], full["id"]]
    await office.handlers.revoke(office.call(principal=principal, token=limited["id"]))
    with pytest.raises(Forbidden, match="has no token"):
        await office.handlers.revoke(office.call(principal=principal, token=bobs["id"]))


@pytest.mark.parametrize(
    ("wanted", "lasts"),
    [
        ({}, timedelta(days=90)),
        ({"lifetime": None}, timedelta(days=90)),
        ({"lifetime": "3600s"}, timedelta(hours=1)),
        ({"lifetime": "0s"}, None),
    ],
)
async def test_a_token_counts_for_90_days_unless_the_request_says_otherwise(
    office: Office, wanted: dict[str, object], lasts: timedelta | None
):
    made, _ = await office.token(**wanted)
    expires_at = office.service.directory.token(made["id"]).expires_at
    assert expires_at == (None if lasts is None else office.clock.now() + lasts)


@pytest.mark.parametrize("lifetime", ["-1s", "316310400s", "soon"])
async def test_a_lifetime_that_no_token_can_have_is_refused(office: Office, lifetime: str):
    with pytest.raises(Invalid, match="lifetime"):
        await office.token(lifetime=lifetime)
