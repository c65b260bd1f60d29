"""As which account somebody of the provider signs in, and who is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0
from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountChange,
    AccountKind,
    Directory,
    ProviderIdentity,
)
from trainshed.core.accounts.oidc import ProvidedPerson
from trainshed.core.accounts.sign_in_rules import MOST_SESSIONS, signed_in, with_session
from trainshed.core.errors import Forbidden

ISSUER = "https://id.example.org"
ANN = ProvidedPerson(identity=ProviderIdentity(ISSUER, "ann-1"), name="ann@example.org", display_name="Ann")
SECOND = timedelta(seconds=1)


def directory(*accounts: Account) -> Directory:
    result = Directory()
    for account in accounts:
        result = result.with_account(account)
    return result


def known(name: str = ANN.name, **more: object) -> Account:
    return replace(Account(name=name, created_at=T0), **more)  # pyright: ignore[reportArgumentType]


def enter(
    before: Directory, person: ProvidedPerson = ANN, *, adds: bool = False
) -> tuple[Directory, Account]:
    return signed_in(before, person, T0, adds_accounts=adds)


def test_the_first_sign_in_binds_the_account_to_the_person():
    after, account = enter(directory(known()))
    assert account.identity == ANN.identity and after.account(ANN.name) == account
    assert enter(after)[0] == after


def test_somebody_else_with_the_same_address_does_not_get_the_account():
    after, _ = enter(directory(known()))
    for other in (ProviderIdentity(ISSUER, "ann-2"), ProviderIdentity("https://other.example", "ann-1")):
        with pytest.raises(Forbidden, match=r"belongs to another person.*trainshed users unlink"):
            enter(after, replace(ANN, identity=other), adds=True)


def test_an_account_that_was_unlinked_belongs_to_who_comes_next():
    after, _ = enter(directory(known()))
    other = replace(ANN, identity=ProviderIdentity(ISSUER, "ann-2"))
    after, account = enter(after.without_identity(ANN.name), other)
    assert account.identity == other.identity
    with pytest.raises(Forbidden):
        enter(after)


def test_who_gets_another_address_keeps_the_account():
    after, _ = enter(directory(known(), known("ann.lee@example.org")))
    assert enter(after, replace(ANN, name="ann.lee@example.org"))[1].name == ANN.name


def test_without_an_account_nobody_comes_in_unless_new_ones_are_made():
    with pytest.raises(
        Forbidden, match=r"no account 'ann@example.org' here.*trainshed users add ann@example.org"
    ):
        enter(Directory())
    after, account = enter(Directory(), adds=True)
    assert (account.name, account.display_name, account.kind) == (ANN.name, "Ann", AccountKind.USER)
    assert after.grants_of(account) == () and account.identity == ANN.identity


@pytest.mark.parametrize("name", ["", "a b", "ann/../eve", "owner\n", "ä@example.org", "a" * 200])
def test_a_name_that_no_account_can_have_is_refused(name: str):
    with pytest.raises(Forbidden, match="No account can have the name"):
        enter(Directory(), replace(ANN, name=name), adds=True)


def test_a_disabled_account_stays_out_the_first_time_and_later():
    with pytest.raises(Forbidden, match="is disabled"):
        enter(directory(known(is_disabled=True)))
    after, _ = enter(directory(known()))
    with pytest.raises(Forbidden, match="is disabled"):
        enter(after.with_change(ANN.name, AccountChange(is_disabled=True)), adds=True)


def test_nobody_signs_in_as_a_service_account():
    with pytest.raises(Forbidden, match="service account"):
        enter(directory(known(kind=AccountKind.SERVICE_ACCOUNT)), adds=True)


def test_groups_of_the_provider_are_those_of_the_same_name_here_and_no_others():
    before = (
        directory(known(), known("bob")).with_group("vision", ["bob"]).with_group("old", [ANN.name, "bob"])
    )
    after, _ = enter(before, replace(ANN, groups=frozenset({"vision", "not-here"})))
    assert after.groups == {"vision": {ANN.name, "bob"}, "old": {"bob"}}
    assert enter(after)[0].groups == after.groups


def session(number: int) -> AccessToken:
    made = T0 + number * SECOND
    return AccessToken(
        id=f"{number}",
        account=ANN.name,
        title="console",
        digest="",
        created_at=made,
        expires_at=made + timedelta(days=7),
        is_session=True,
    )


def test_an_account_has_a_bounded_number_of_sessions_and_none_that_is_over():
    people = directory(known()).with_token(replace(session(0), id="laptop", is_session=False))
    for number in range(MOST_SESSIONS + 5):
        people = with_session(people, session(number), T0 + number * SECOND)
    ids = {f"{number}" for number in range(5, MOST_SESSIONS + 5)}
    assert set(people.tokens) == {"laptop", *ids}
    late = T0 + timedelta(days=8)
    people = with_session(people, replace(session(99), created_at=late, expires_at=late + SECOND), late)
    assert set(people.tokens) == {"laptop", "99"}
