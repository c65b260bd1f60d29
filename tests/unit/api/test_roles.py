"""Every method for every role, in its own project, in another one, and of the whole server."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.types import ASGIApp

from tests.builders import T0
from tests.unit.api.test_routes import PROVIDER, asked
from trainshed.api.app import make_app
from trainshed.api.call import SOCKET, Call, Method, RawAnswer, Reply
from trainshed.assembly.assembly import assemble
from trainshed.core.accounts.directory import Account, RoleGrant, TokenRequest
from trainshed.core.accounts.permission import OWNER, Permission
from trainshed.core.accounts.role import EVERYWHERE, OF_EVERYBODY, Role
from trainshed.core.bucket import BucketInfo
from trainshed.settings.table import Settings

NOT_OF_PEOPLE = {Permission.TOKENS_READ}  # programs of jobs ask for these
MINE, THEIRS = "p1", "p2"
PARENT = "/projects/{project}/locations/{location}"
REMOVAL = (("POST", "runtimes:prune"), ("DELETE", "runtimes/{runtime}"))


class KnownBuckets:
    """Each bucket belongs to the project of its name."""

    def is_of_a_job(self, token: str) -> bool:
        return False

    async def look(self, bucket: str) -> BucketInfo:
        return BucketInfo(name=bucket, project=bucket, location="US", created_at=T0, updated_at=T0)


class Team:
    """The methods of a server with nothing behind them, and one account for each role."""

    def __init__(self, home: Path) -> None:
        settings = Settings.from_args(["--home", str(home), "--engine", "none", *PROVIDER])
        assembly = assemble(settings, "http://127.0.0.1:8080")
        self.methods = assembly.api.methods
        self.accounts = assembly.access.accounts
        gate = replace(assembly.access.gate, access=cast(Any, KnownBuckets()))
        self.app: ASGIApp = make_app(
            tuple(replace(method, handler=_reached) for method in self.methods), gate, lambda *_: None
        )
        self.tokens: dict[tuple[str, Role | None], str] = {}
        for project in (MINE, EVERYWHERE):
            for role in (*Role, None):
                self.tokens[project, role] = self._account(project, role)

    def _account(self, project: str, role: Role | None) -> str:
        name = f"{role or 'nobody'}-{'everywhere' if project == EVERYWHERE else project}"
        account = Account(name=name, created_at=T0)
        self.accounts.store.change(lambda directory: directory.with_account(account))
        grants = self.accounts.policy(project)[0]
        if role is not None:
            self.accounts.set_policy(project, (*grants, RoleGrant(project, role, account.member)))
        return self.accounts.make_token(OWNER, TokenRequest(account=name))[1]

    async def asks(self, token: str, method: Method, project: str) -> int:
        """The status for a call that names this project, or its bucket."""
        path = re.sub(r"{(project|bucket|target)}", project, method.path)
        path = re.sub(r"{\w+(\.\.\.)?}", "x", path)
        if method.keyed:
            return await asked(self.app, method.verb, f"/t/{token}{path}")
        return await asked(self.app, method.verb, path, (b"authorization", f"Bearer {token}".encode()))


async def _reached(call: Call) -> Reply:
    return RawAnswer(status=204)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("home"))


def guarded(team: Team) -> list[Method]:
    return [m for m in team.methods if m.permission is not Permission.PUBLIC and m.verb != SOCKET]


def is_open(method: Method, rights: frozenset[Permission]) -> bool:
    """To a role in a project: what is of the whole server is not."""
    return method.permission in rights and not method.of_server


def names_a_project(method: Method) -> bool:
    return bool(re.search(r"{(project|bucket|target)}", method.path))


@pytest.mark.parametrize("role", [*Role, None])
async def test_a_role_in_a_project_opens_what_it_has_there_and_nothing_elsewhere(
    team: Team, role: Role | None
):
    rights = OF_EVERYBODY | (frozenset() if role is None else role.rights(MINE))
    for method in guarded(team):
        status = await team.asks(team.tokens[MINE, role], method, MINE)
        assert status == (204 if is_open(method, rights) else 403), (method, status)
        if names_a_project(method):
            assert await team.asks(team.tokens[MINE, role], method, THEIRS) == 403, method


@pytest.mark.parametrize("role", [*Role, None])
async def test_a_role_everywhere_opens_the_same_in_every_project(team: Team, role: Role | None):
    rights = OF_EVERYBODY | (frozenset() if role is None else role.rights(EVERYWHERE))
    for method in guarded(team):
        for project in (MINE, THEIRS, "-"):
            status = await team.asks(team.tokens[EVERYWHERE, role], method, project)
            assert status == (204 if method.permission in rights else 403), (method, project, status)


async def test_what_is_of_the_whole_server_is_said_in_the_table(team: Team):
    of_server = {(method.verb, method.path) for method in team.methods if method.of_server}
    assert of_server == {
        ("GET", "/v1/costs"),
        ("GET", "/v1/shares"),
        ("POST", "/v1/secrets:rotateKey"),
        *((verb, f"/{v}{PARENT}/{path}") for v in ("v1", "v1beta1") for verb, path in REMOVAL),
    }


async def test_the_key_of_all_secrets_is_changed_by_an_admin_everywhere_alone(team: Team):
    [rotate] = [method for method in team.methods if method.path == "/v1/secrets:rotateKey"]
    for (project, role), token in team.tokens.items():
        may = (project, role) == (EVERYWHERE, Role.ADMIN)
        assert await team.asks(token, rotate, MINE) == (204 if may else 403), (project, role)


async def test_all_projects_at_once_are_for_those_with_a_role_everywhere(team: Team):
    for method in guarded(team):
        if "{project}" in method.path:
            assert await team.asks(team.tokens[MINE, Role.ADMIN], method, "-") == 403, method


def test_every_permission_comes_with_some_role():
    given = OF_EVERYBODY.union(*(role.rights(EVERYWHERE) for role in Role))
    assert given == set(Permission) - NOT_OF_PEOPLE


def test_who_submits_jobs_in_a_project_has_channels_of_their_own_there_and_no_others():
    own = {Permission.NOTICES_OWN}
    notices = {permission for permission in Permission if permission.startswith("notices.")}
    assert Role.VIEWER.rights(MINE) & notices == set()
    assert Role.USER.rights(EVERYWHERE) & notices == Role.USER.rights(MINE) & notices == own
    assert Role.ADMIN.rights(MINE) & notices == own | {Permission.NOTICES_READ}


def test_each_role_has_all_rights_of_the_one_before():
    for project in (MINE, EVERYWHERE):
        assert Role.VIEWER.rights(project) < Role.USER.rights(project) < Role.ADMIN.rights(project)


def test_what_is_of_the_whole_server_comes_with_no_role_in_a_project():
    of_server = {Permission.ACCOUNTS_READ, Permission.ACCOUNTS_WRITE, Permission.METRICS_READ}
    of_server |= {Permission.NOTICES_WRITE, Permission.SHARES_WRITE, Permission.SECRETS_ROTATE}
    assert Role.ADMIN.rights(EVERYWHERE) - Role.ADMIN.rights(MINE) == of_server


async def test_a_limited_token_opens_no_more_than_its_limits(team: Team):
    wanted = TokenRequest(account="admin-everywhere", role=Role.VIEWER, projects=(MINE,))
    token = team.accounts.make_token(OWNER, wanted)[1]
    rights = OF_EVERYBODY | Role.VIEWER.rights(MINE)
    for method in guarded(team):
        status = await team.asks(token, method, MINE)
        assert status == (204 if is_open(method, rights) else 403), (method, status)
        if names_a_project(method):
            assert await team.asks(token, method, THEIRS) == 403, method


@pytest.mark.parametrize("hurt", ["cut", "grown", "swapped", "empty", "other id"])
async def test_a_token_that_was_changed_opens_nothing(team: Team, hurt: str):
    token = team.tokens[EVERYWHERE, Role.ADMIN]
    mark, id, secret = token.split(".")
    wrong = {
        "cut": token[:-1],
        "grown": f"{token}A",
        "swapped": f"{mark}.{id}.{secret.swapcase()}",
        "empty": f"{mark}.{id}.",
        "other id": f"{mark}.{team.tokens[MINE, Role.USER].split('.')[1]}.{secret}",
    }[hurt]
    for method in guarded(team):
        status = await team.asks(wrong, method, MINE)
        assert status == (403 if method.keyed else 401), (method, status)
