"""As which account a person of the provider signs in. Pure.

`service/provider_sign_in.py` calls it. An account belongs to the identity that signed in as it first: whoever
gets the same address later, at the same provider, does not get the account.
"""

from dataclasses import replace
from datetime import datetime

from trainshed.core.accounts.directory import MOST_NAME, AccessToken, Account, AccountKind, Directory
from trainshed.core.accounts.oidc import ProvidedPerson
from trainshed.core.errors import Forbidden, Invalid

MOST_SESSIONS = 20  # of an account: the oldest ends when somebody signs in once more
_SHOWN = 60  # characters of a subject in a sentence


def signed_in(
    directory: Directory, person: ProvidedPerson, now: datetime, *, adds_accounts: bool
) -> tuple[Directory, Account]:
    """The directory with the person's identity and groups, and the account; Forbidden with the reason."""
    account = _account_of(directory, person)
    if account is None:
        if not adds_accounts:
            raise Forbidden(
                f"There is no account '{person.name[:MOST_NAME]}' here. Whoever administers the server can "
                f"add it (trainshed users add {person.name[:MOST_NAME]}), or start it with "
                "--oidc-new-accounts."
            )
        account = Account(name=person.name, display_name=person.display_name[:MOST_NAME], created_at=now)
        try:
            directory = directory.with_account(account)
        except Invalid as error:
            raise Forbidden(f"No account can have the name that the provider gives: {error}") from error
    if account.is_disabled:
        raise Forbidden(
            f"The account '{account.name}' is disabled. Whoever administers the server can enable it."
        )
    if account.identity is None:
        directory = directory.with_identity(account.name, person.identity)
    if person.groups is not None:
        directory = _in_groups(directory, account.name, person.groups)
    return directory, directory.account(account.name)


def _account_of(directory: Directory, person: ProvidedPerson) -> Account | None:
    """By the identity first: it stays the same where somebody gets another address."""
    for account in directory.accounts.values():
        if account.identity == person.identity:
            return account
    account = directory.accounts.get(person.name)
    if account is None:
        return None
    if account.kind is AccountKind.SERVICE_ACCOUNT:
        raise Forbidden(f"'{account.name}' is a service account: people do not sign in as it.")
    if account.identity is not None:
        raise Forbidden(
            f"The account '{account.name}' belongs to another person of {account.identity.issuer}, who "
            f"signed in before (you are '{person.identity.subject[:_SHOWN]}' of {person.identity.issuer}). "
            "Whoever administers the server can give it to who signs in next: "
            f"trainshed users unlink {account.name}."
        )
    return account


def _in_groups(directory: Directory, name: str, wanted: frozenset[str]) -> Directory:
    """In the groups of these names that there are, and in no others."""
    groups = {
        group: members | {name} if group in wanted else members - {name}
        for group, members in directory.groups.items()
    }
    return directory if groups == directory.groups else replace(directory, groups=groups)


def with_session(directory: Directory, token: AccessToken, now: datetime) -> Directory:
    """With the token of a new session, without those of the account that are over or too many."""
    sessions = [other for other in directory.tokens_of(token.account) if other.is_session]
    going = sorted(
        (other for other in sessions if not other.is_over(now)), key=lambda other: other.created_at
    )
    kept = going[len(going) - MOST_SESSIONS + 1 :] if len(going) >= MOST_SESSIONS else going
    for other in sessions:
        if other not in kept:
            directory = directory.without_token(other.id)
    return directory.with_token(token)
