"""Accounts, groups, roles and tokens, and what a principal may do by them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import T0
from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountChange,
    AccountKind,
    Directory,
    ProviderIdentity,
    RoleGrant,
    digest_of,
)
from trainshed.core.accounts.permission import Permission, Resource, allowed
from trainshed.core.accounts.role import EVERYWHERE, OF_EVERYBODY, Role
from trainshed.core.errors import AlreadyExists, Invalid, NotFound

ANN = Account(name="ann", created_at=T0)
BOT = Account(name="bot", kind=AccountKind.SERVICE_ACCOUNT, created_at=T0)
TOKEN = AccessToken(id="1", account="ann", title="laptop", digest=digest_of("secret"), created_at=T0)
DISABLED = AccountChange(is_disabled=True)
TEAM = Directory().with_account(ANN).with_account(BOT).with_group("vision", ["ann"]).with_token(TOKEN)


def rights(directory: Directory, project: str, token: str = "1") -> frozenset[Permission]:
    principal = directory.principal(token, T0)
    assert principal is not None
    return principal.rights_in(project)


def granted(*grants: tuple[str, Role, str]) -> Directory:
    directory = TEAM
    for project in {project for project, _, _ in grants}:
        directory = directory.with_grants(
            project, [RoleGrant(*grant) for grant in grants if grant[0] == project]
        )
    return directory


def test_an_account_without_a_role_may_see_to_itself_alone():
    assert rights(TEAM, "p1") == OF_EVERYBODY


def test_roles_of_an_account_and_of_its_groups_add_up():
    directory = granted(("p1", Role.VIEWER, "user:ann"), ("p1", Role.USER, "group:vision"))
    assert rights(directory, "p1") == OF_EVERYBODY | Role.USER.rights("p1")
    assert rights(directory, "p2") == OF_EVERYBODY
    assert rights(directory.with_group("vision", []), "p1") == OF_EVERYBODY | Role.VIEWER.rights("p1")


def test_a_user_is_not_the_service_account_of_the_same_name():
    wrong = RoleGrant("p1", Role.USER, "serviceAccount:ann")
    with pytest.raises(Invalid, match="serviceAccount:ann"):
        TEAM.with_grants("p1", [wrong])


@pytest.mark.parametrize("member", ["ann", "user:eve", "group:speech", "allUsers", ""])
def test_roles_go_to_those_who_are_there(member: str):
    with pytest.raises(Invalid, match="is nobody here"):
        TEAM.with_grants("p1", [RoleGrant("p1", Role.USER, member)])


WRONG_PROJECTS = ["-", "*", "", "-p1", "p 1", "p1/p2", "p*", "<none>", "a" * 129, "p1\n"]


@pytest.mark.parametrize("project", [name for name in WRONG_PROJECTS if name != EVERYWHERE])
def test_a_role_is_given_in_a_project_or_everywhere_and_nowhere_else(project: str):
    with pytest.raises(Invalid, match="--everywhere"):
        TEAM.with_grants(project, [RoleGrant(project, Role.VIEWER, "user:ann")])
    assert TEAM.with_grants(project, []) == TEAM  # one that a file has can be taken away


@pytest.mark.parametrize("project", ["p1", "1234567890", "example.com:vision", "Bild_ä", "a"])
def test_names_of_projects_are_free(project: str):
    assert TEAM.with_grants(project, [RoleGrant(project, Role.VIEWER, "user:ann")]).grants_in(project)


@pytest.mark.parametrize("permission", Permission)
def test_all_projects_at_once_need_rights_everywhere_whatever_the_file_has(permission: Permission):
    grants = frozenset({RoleGrant("-", Role.ADMIN, "user:ann"), RoleGrant("p1", Role.ADMIN, "user:ann")})
    directory = replace(TEAM, grants=grants)
    limited = replace(directory, tokens={"1": replace(TOKEN, projects=("-", "p1"))})
    for principal in (directory.principal("1", T0), limited.principal("1", T0)):
        assert principal is not None and not principal.sees("-")
        assert bool(allowed(principal, permission, Resource("-"))) == (permission in OF_EVERYBODY)


def test_grants_of_a_project_are_replaced_as_a_whole_and_others_stay():
    directory = granted(("p1", Role.USER, "user:ann"), ("p2", Role.USER, "user:ann")).with_grants("p1", [])
    assert directory.grants_in("p1") == () and len(directory.grants_in("p2")) == 1


def test_who_is_removed_leaves_nothing():
    directory = granted(("p1", Role.USER, "user:ann")).without_account("ann")
    assert directory == Directory().with_account(BOT).with_group("vision", [])


def test_a_removed_group_takes_its_roles_along():
    directory = granted(("p1", Role.USER, "group:vision")).without_group("vision")
    assert directory.grants == frozenset() and rights(directory, "p1") == OF_EVERYBODY


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "ä", "a/b", "a" * 129, "a\n"])
def test_names_have_a_syntax(name: str):
    with pytest.raises(Invalid, match="must be at most"):
        Directory().with_account(replace(ANN, name=name))


@pytest.mark.parametrize("name", ["owner", "anonymous", "job", "account"])
def test_nobody_is_called_what_the_audit_log_calls_others(name: str):
    with pytest.raises(Invalid, match="choose another name"):
        TEAM.with_account(replace(ANN, name=name))


def test_a_name_is_taken_once():
    with pytest.raises(AlreadyExists, match="'ann'"):
        TEAM.with_account(ANN)


@pytest.mark.parametrize(
    "change",
    [
        lambda: TEAM.without_account("eve"),
        lambda: TEAM.with_change("eve", DISABLED),
        lambda: TEAM.without_identity("eve"),
        lambda: TEAM.without_group("speech"),
        lambda: TEAM.without_token("9"),
        lambda: TEAM.with_token(replace(TOKEN, account="eve")),
    ],
)
def test_what_is_not_there_cannot_be_changed(change: object):
    with pytest.raises(NotFound, match="There is no"):
        change()  # type: ignore[operator]


def test_a_token_counts_until_it_expires_is_revoked_or_its_account_is_disabled():
    short = TEAM.with_token(replace(TOKEN, id="2", expires_at=T0 + timedelta(hours=1)))
    assert short.principal("2", T0 + timedelta(minutes=59)) is not None
    assert short.principal("2", T0 + timedelta(hours=1)) is None
    assert TEAM.without_token("1").principal("1", T0) is None
    assert TEAM.with_change("ann", DISABLED).principal("1", T0) is None
    assert TEAM.with_change("ann", DISABLED).with_token(TOKEN).principal("1", T0) is None


def test_who_is_enabled_again_needs_new_tokens_and_has_all_else():
    enabled = TEAM.with_change("ann", DISABLED).with_change("ann", AccountChange(is_disabled=False))
    assert enabled == TEAM.without_token("1")


def test_what_a_change_leaves_out_stays():
    disabled = TEAM.with_change("ann", DISABLED)
    assert disabled.with_change("ann", AccountChange()) == disabled
    renamed = disabled.with_change("ann", AccountChange(display_name="Ann B.")).account("ann")
    assert renamed == replace(ANN, is_disabled=True, display_name="Ann B.")


def test_who_an_account_no_longer_belongs_to_keeps_nothing_that_opens_it():
    bots = replace(TOKEN, id="3", account="bot")
    before = TEAM.with_identity("ann", ProviderIdentity("https://issuer", "ann-1")).with_token(bots)
    before = before.with_token(replace(TOKEN, id="2", is_session=True))
    after = before.without_identity("ann")
    assert after.account("ann") == ANN
    assert set(after.tokens) == {"3"}


def test_a_secret_fits_as_a_whole():
    assert TOKEN.fits("secret")
    assert not any(TOKEN.fits(word) for word in ("", "secre", "secret ", "SECRET", TOKEN.digest))


@given(
    own=st.sets(st.tuples(st.sampled_from(["p1", "p2", EVERYWHERE]), st.sampled_from(Role)), max_size=4),
    cap=st.none() | st.sampled_from(Role),
    projects=st.sets(st.sampled_from(["p1", "p2", "p3"]), max_size=2),
)
def test_a_token_never_has_more_than_its_account_or_its_limits(
    own: set[tuple[str, Role]], cap: Role | None, projects: set[str]
):
    directory = granted(*[(project, role, "user:ann") for project, role in own])
    directory = directory.with_token(replace(TOKEN, id="2", role=cap, projects=tuple(projects)))
    for project in ("p1", "p2", "p3", "p4"):
        limited = rights(directory, project, "2") - OF_EVERYBODY
        assert limited <= rights(directory, project)
        assert cap is None or limited <= cap.rights(EVERYWHERE)
        assert not limited or not projects or project in projects
        if not projects:
            most = frozenset[Permission]() if cap is None else cap.rights(EVERYWHERE)
            assert limited == (rights(directory, project) - OF_EVERYBODY) & (most or frozenset(Permission))


def test_a_refusal_says_the_same_of_projects_that_are_not_there():
    principal = TEAM.principal("1", T0)
    assert principal is not None
    words = [allowed(principal, Permission.JOBS_GET, Resource(name)).reason for name in ("p1", "nowhere")]
    assert words[0].replace("p1", "X") == words[1].replace("nowhere", "X") and "no such project" in words[0]
