"""Use cases of accounts: who is there, their groups, roles and tokens. `api/accounts.py` calls it.

Who may change accounts and roles is decided before, by permissions. Here it is decided that everybody may
see and revoke their own tokens, and make new ones, with a token that has all their rights. One with fewer
sees and revokes itself.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from trainshed.core.accounts.account_token import token_text
from trainshed.core.accounts.audit import AuditLog, AuditPage, AuditPlace, AuditQuery
from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountChange,
    AccountKind,
    Directory,
    RoleGrant,
    TokenRequest,
    digest_of,
    project_fault,
)
from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind
from trainshed.core.errors import Conflict, Forbidden, Invalid, Violation
from trainshed.core.ports import Clock, DirectoryStore

MOST_TITLE = 100  # characters
LONGEST = timedelta(days=3660)


async def _nothing(name: str) -> None:
    """Where nothing is kept for accounts but the accounts."""


@dataclass(slots=True)
class AccountService:
    store: DirectoryStore
    audit: AuditLog
    clock: Clock
    last_use: Callable[[str], date | None] = lambda _: (
        None
    )  # the day on which a token was last used, by its id
    forget: Callable[[str], Awaitable[None]] = _nothing  # what is kept for whoever had the account before
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def directory(self) -> Directory:
        return self.store.directory

    # Accounts and groups

    async def add(self, name: str, kind: AccountKind, display_name: str = "") -> Account:
        account = Account(name=name, kind=kind, display_name=display_name, created_at=self.clock.now())
        await self.make_way(self.directory.with_account(account), name)
        return self.store.change(lambda directory: directory.with_account(account)).account(name)

    async def make_way(self, planned: Directory, name: str) -> None:
        """Called before the directory becomes as planned: whoever is new there gets nothing of a namesake.

        Before, not after: a server that dies in between has no new account with what was another's.
        """
        if name in planned.accounts and name not in self.directory.accounts:
            await self.forget(name)

    def update(self, name: str, change: AccountChange) -> Account:
        return self.store.change(lambda directory: directory.with_change(name, change)).account(name)

    async def unlink(self, name: str) -> Account:
        """Whoever signs in with the account's name at the provider next is who it belongs to from then on.

        Its tokens and sessions end, and it has no channels of notices any more.
        """
        self.directory.account(name)
        await self.forget(name)  # before, too: this server may die, and somebody else may sign in then
        account = self.store.change(lambda directory: directory.without_identity(name)).account(name)
        await self.forget(name)
        return account

    async def remove(self, name: str) -> None:
        """At once, whatever else fails: what was not forgotten then is before another gets the name."""
        self.store.change(lambda directory: directory.without_account(name))
        await self.forget(name)

    def set_group(self, name: str, members: Iterable[str]) -> frozenset[str]:
        return self.store.change(lambda directory: directory.with_group(name, members)).groups[name]

    def remove_group(self, name: str) -> None:
        self.store.change(lambda directory: directory.without_group(name))

    # Roles

    def policy(self, project: str) -> tuple[tuple[RoleGrant, ...], str]:
        """The roles in a project, and a mark that changes with them."""
        grants = self.directory.grants_in(project)
        return grants, hashlib.sha256(repr(grants).encode()).hexdigest()[:16]

    def set_policy(self, project: str, grants: Iterable[RoleGrant], mark: str = "") -> None:
        """Conflict where the mark is given and they have changed since."""
        if mark and mark != self.policy(project)[1]:
            raise Conflict(
                f"The roles in '{project}' have changed since they were read: read them again (etag)."
            )
        self.store.change(lambda directory: directory.with_grants(project, grants))

    # Tokens

    def tokens(self, principal: Principal, account: str = "") -> tuple[AccessToken, ...]:
        """Of the account, by default the caller's own. A token with fewer rights sees itself alone."""
        name = self._meant(principal, account, Permission.ACCOUNTS_READ)
        self.directory.account(name)
        tokens = self.directory.tokens_of(name)
        if Permission.ACCOUNTS_READ in principal.rights:
            return tokens
        return tuple(token for token in tokens if _may_see_to(principal, token))

    def make_token(self, principal: Principal, wanted: TokenRequest) -> tuple[AccessToken, str]:
        """What is kept of a new token, and its text, which nobody can see again."""
        name = self._meant(principal, wanted.account, Permission.ACCOUNTS_WRITE)
        if principal.limited:
            raise Forbidden(
                "A token with limited rights makes no tokens: use one with all rights of its account."
            )
        violations: list[Violation] = []
        if len(wanted.title) > MOST_TITLE:
            violations.append(Violation("title", f"must be at most {MOST_TITLE} characters."))
        lifetime = wanted.lifetime
        if lifetime is not None and not timedelta() < lifetime <= LONGEST:
            violations.append(
                Violation("lifetime", f"must be more than 0s, and {LONGEST.days} days at most.")
            )
        violations += [Violation("projects", fault) for fault in map(project_fault, wanted.projects) if fault]
        if violations:
            raise Invalid(tuple(violations))
        now, secret = self.clock.now(), secrets.token_urlsafe(32)
        token = AccessToken(
            id=secrets.token_hex(5),
            account=name,
            title=wanted.title or f"token of {now:%Y-%m-%d}",
            digest=digest_of(secret),
            created_at=now,
            expires_at=None if lifetime is None else now + lifetime,
            role=wanted.role,
            projects=wanted.projects,
        )
        self.store.change(lambda directory: directory.with_token(token))
        return token, token_text(token.id, secret)

    def revoke(self, principal: Principal, id: str) -> None:
        """One's own, or anybody's with the permission. Whether others have such a token is not said."""
        if Permission.ACCOUNTS_WRITE not in principal.rights:
            known = self.directory.tokens.get(id)
            if known is None or not _may_see_to(principal, known):
                raise Forbidden(f"{principal.id} has no token '{id}' that this token may revoke.")
        self.store.change(lambda directory: directory.without_token(id))

    def end_session(self, id: str) -> None:
        """Ends the token that only a browser's session stands on; others are left alone."""
        token = self.directory.tokens.get(id)
        if token is not None and token.is_session:
            self.store.change(lambda directory: directory.without_token(id))

    def _meant(self, principal: Principal, account: str, permission: Permission) -> str:
        if account and account != principal.id:
            if permission not in principal.rights:
                raise Forbidden(f"{principal} may only see to tokens of its own.")
            return account
        if principal.kind is not PrincipalKind.ACCOUNT:
            raise Invalid((Violation("account", "must be given: the owner of the server is no account."),))
        return principal.id

    # The audit log

    async def audited(
        self, principal: Principal, query: AuditQuery, limit: int, place: AuditPlace | None = None
    ) -> AuditPage:
        """The newest rows first: those of projects in which the caller may see them."""
        if Permission.AUDIT_READ not in principal.rights:
            own = {name for name, rights in principal.by_project.items() if Permission.AUDIT_READ in rights}
            query = replace(
                query, projects=frozenset(own if query.projects is None else own & query.projects)
            )
        self.audit.settle()
        async with self._reading:  # one at a time, and beside the event loop: a log may be long
            return await asyncio.to_thread(self.audit.read, query, limit, place)


def _may_see_to(principal: Principal, token: AccessToken) -> bool:
    """Whether it is one's own, and the one in use where that has fewer rights than its account."""
    return token.account == principal.id and (not principal.limited or token.id == principal.token)
