"""What the methods of accounts, roles and tokens let nobody do by mistake or by a token with fewer rights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.id_tokens import StepClock
from trainshed.api.accounts import AccountHandlers
from trainshed.api.call import Call
from trainshed.core.directory import AccountKind
from trainshed.core.errors import Invalid
from trainshed.core.permission import OWNER, Principal
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.open import NoAuthentication
from trainshed.service.accounts import AccountService


class Office:
    """The methods, and one account."""

    def __init__(self, home: Path) -> None:
        self.clock, store = StepClock(), DirectoryFile(home / "accounts.json")
        self.service = AccountService(store, AuditFiles(home / "audit"), self.clock)
        self.people = AccountTokens(NoAuthentication(), store, self.clock)
        self.handlers = AccountHandlers(self.service)
        self.service.add("ann", AccountKind.USER)

    def call(
        self, body: Mapping[str, object] | None = None, principal: Principal = OWNER, **path: str
    ) -> Call:
        return Call(path=path, query={}, body=dict(body or {}), headers={}, base_url="", principal=principal)

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
