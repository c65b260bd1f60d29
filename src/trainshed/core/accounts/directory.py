"""Directory: who may come in, and what they may do: accounts, groups, roles and tokens. Pure.

`service/accounts.py` changes it, `identity/account_tokens.py` asks it for each request. Every change gives a
new Directory or raises Invalid with every violation. It has no token, only what one is compared with.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind
from trainshed.core.accounts.role import EVERYWHERE, OF_EVERYBODY, Role
from trainshed.core.errors import AlreadyExists, Invalid, NotFound, Violation

MOST_NAME = 128  # characters
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._+@-]*[a-z0-9])?")
_SYNTAX = (
    f"must be at most {MOST_NAME} of the characters a-z, 0-9, '.', '_', '+', '-' and '@', "
    "and begin and end with a letter or a digit"
)
_PROJECT = re.compile(r"[^\W_][\w.:-]*")
GROUP = "group"


class AccountKind(StrEnum):
    USER = "user"
    SERVICE_ACCOUNT = "serviceAccount"


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """Who somebody is at an OpenID Connect provider. A provider never gives it to anybody else."""

    issuer: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    kind: AccountKind = AccountKind.USER
    display_name: str = ""
    created_at: datetime
    is_disabled: bool = False
    identity: ProviderIdentity | None = None  # who signs in as it with the provider; None: nobody has

    @property
    def member(self) -> str:
        """As roles name it."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChange:
    """What is None stays as it is."""

    display_name: str | None = None
    is_disabled: bool | None = None


@dataclass(frozen=True, slots=True, order=True)
class RoleGrant:
    project: str  # or EVERYWHERE
    role: Role
    member: str  # user:NAME, serviceAccount:NAME or group:NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """What is kept of a token: nobody can make it of this."""

    id: str
    account: str
    title: str
    digest: str  # of its secret
    created_at: datetime
    expires_at: datetime | None = None
    role: Role | None = None  # it can do no more than that; None: all that its account can
    projects: tuple[str, ...] = ()  # it can be used for these alone; empty: for all
    is_session: bool = (
        False  # nobody has its secret: it stands for the session of a browser, and ends with it
    )

    def fits(self, secret: str) -> bool:
        # Compared in constant time, so that nobody can find it letter by letter.
        return hmac.compare_digest(self.digest, digest_of(secret))

    def is_over(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    account: str = ""  # empty: the caller's own
    title: str = ""
    lifetime: timedelta | None = None  # None: until it is revoked
    role: Role | None = None
    projects: tuple[str, ...] = ()


def digest_of(secret: str) -> str:
    """A secret is 256 random bits: no slow hash is needed, nobody can try them all."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])  # their accounts
    grants: frozenset[RoleGrant] = frozenset()
    tokens: Mapping[str, AccessToken] = field(default_factory=dict[str, AccessToken])

    # Looking

    def account(self, name: str) -> Account:
        if name not in self.accounts:
            raise NotFound(f"There is no account '{name}'.")
        return self.accounts[name]

    def token(self, id: str) -> AccessToken:
        if id not in self.tokens:
            raise NotFound(f"There is no token '{id}'.")
        return self.tokens[id]

    def tokens_of(self, account: str) -> tuple[AccessToken, ...]:
        return tuple(token for token in self.tokens.values() if token.account == account)

    def grants_of(self, account: Account) -> tuple[RoleGrant, ...]:
        """Its own and those of its groups."""
        groups = {f"{GROUP}:{name}" for name, members in self.groups.items() if account.name in members}
        return tuple(sorted(grant for grant in self.grants if grant.member in {account.member, *groups}))

    def grants_to(self, group: str) -> tuple[RoleGrant, ...]:
        return tuple(sorted(grant for grant in self.grants if grant.member == f"{GROUP}:{group}"))

    def grants_in(self, project: str) -> tuple[RoleGrant, ...]:
        return tuple(sorted(grant for grant in self.grants if grant.project == project))

    def principal(self, id: str, now: datetime) -> Principal | None:
        """Who has this token, with all that it allows; None where it does not count any more."""
        token = self.tokens.get(id)
        account = None if token is None else self.accounts.get(token.account)
        if token is None or account is None or account.is_disabled or token.is_over(now):
            return None
        by_project: dict[str, frozenset[Permission]] = {}
        for grant in self.grants_of(account):
            rights = grant.role.rights(grant.project)
            if token.role is not None:
                rights &= token.role.rights(EVERYWHERE)
            is_cut = bool(token.projects) and grant.project == EVERYWHERE
            for project in token.projects if is_cut else (grant.project,):
                if not token.projects or project in token.projects:
                    # What is of the whole server is of no project.
                    kept = rights & Role.ADMIN.rights(project)
                    by_project[project] = by_project.get(project, frozenset()) | kept
        return Principal(
            PrincipalKind.ACCOUNT,
            account.name,
            rights=OF_EVERYBODY | by_project.pop(EVERYWHERE, frozenset()),
            by_project=by_project,
            token=id,
            limited=token.role is not None or bool(token.projects),
        )

    # Changing

    def with_account(self, account: Account) -> "Directory":
        _check("name", account.name)
        if account.name in tuple(PrincipalKind):
            sentence = (
                f"'{account.name}' is what the server itself calls a kind of caller: choose another name."
            )
            raise Invalid((Violation("name", sentence),))
        if account.name in self.accounts:
            raise AlreadyExists(f"There is an account '{account.name}' already.")
        return self._with(account)

    def with_change(self, name: str, change: AccountChange) -> "Directory":
        """Who is disabled has no tokens any more, also not when it is enabled again."""
        account = self.account(name)
        if change.display_name is not None:
            account = replace(account, display_name=change.display_name)
        if change.is_disabled is not None:
            account = replace(account, is_disabled=change.is_disabled)
        return (self.without_tokens_of(name) if change.is_disabled else self)._with(account)

    def with_identity(self, name: str, identity: ProviderIdentity) -> "Directory":
        return self._with(replace(self.account(name), identity=identity))

    def without_identity(self, name: str) -> "Directory":
        """Whoever it belonged to keeps nothing that opens it."""
        return self.without_tokens_of(name)._with(replace(self.account(name), identity=None))

    def _with(self, account: Account) -> "Directory":
        return replace(self, accounts={**self.accounts, account.name: account})

    def without_account(self, name: str) -> "Directory":
        """With it go its tokens, its roles and its places in groups."""
        account = self.account(name)
        return replace(
            self,
            accounts={key: value for key, value in self.accounts.items() if key != name},
            groups={key: members - {name} for key, members in self.groups.items()},
            grants=frozenset(grant for grant in self.grants if grant.member != account.member),
            tokens={key: token for key, token in self.tokens.items() if token.account != name},
        )

    def with_group(self, name: str, members: Iterable[str]) -> "Directory":
        """A new group, or an old one with other members."""
        _check("name", name)
        members = tuple(members)
        wrong = [Violation("members", f"'{m}' is no account.") for m in members if m not in self.accounts]
        if wrong:
            raise Invalid(tuple(wrong))
        return replace(self, groups={**self.groups, name: frozenset(members)})

    def without_group(self, name: str) -> "Directory":
        if name not in self.groups:
            raise NotFound(f"There is no group '{name}'.")
        return replace(
            self,
            groups={key: members for key, members in self.groups.items() if key != name},
            grants=frozenset(grant for grant in self.grants if grant.member != f"{GROUP}:{name}"),
        )

    def with_grants(self, project: str, grants: Iterable[RoleGrant]) -> "Directory":
        """These in place of all that the project has."""
        grants = frozenset(grants)
        if grants and project != EVERYWHERE and (sentence := project_fault(project)):
            raise Invalid((Violation("project", sentence),))
        members = {f"{GROUP}:{name}" for name in self.groups} | {a.member for a in self.accounts.values()}
        unknown = sorted({grant.member for grant in grants} - members)
        if unknown:
            asks = "name user:ACCOUNT, serviceAccount:ACCOUNT or group:GROUP of this server"
            raise Invalid(
                tuple(Violation("policy.bindings.members", f"'{m}' is nobody here: {asks}.") for m in unknown)
            )
        others = frozenset(grant for grant in self.grants if grant.project != project)
        return replace(self, grants=others | grants)

    def with_token(self, token: AccessToken) -> "Directory":
        self.account(token.account)
        return replace(self, tokens={**self.tokens, token.id: token})

    def without_token(self, id: str) -> "Directory":
        self.token(id)
        return replace(self, tokens={key: token for key, token in self.tokens.items() if key != id})

    def without_tokens_of(self, account: str) -> "Directory":
        self.account(account)
        return replace(
            self, tokens={id: token for id, token in self.tokens.items() if token.account != account}
        )


def project_fault(name: str) -> str:
    """Why nobody can have a role or a token in a project of this name; empty where somebody can."""
    if len(name) <= MOST_NAME and _PROJECT.fullmatch(name):
        return ""
    return (
        f"'{name[:MOST_NAME]}' is not the name of a project, which begins with a letter or a digit and has "
        f"letters, digits, '_', '.', ':' and '-' only, at most {MOST_NAME}. A role for all projects is given "
        "with --everywhere, which is server:setIamPolicy; a token counts in all where it names none."
    )


def _check(field: str, name: str) -> None:
    if len(name) > MOST_NAME or not _NAME.fullmatch(name):
        raise Invalid((Violation(field, f"'{name[:MOST_NAME]}' {_SYNTAX}."),))
