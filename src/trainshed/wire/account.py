"""Accounts, groups, tokens, roles and the audit log as JSON. For `api/accounts.py`.

Roles have the shape of Google's IAM policies, so that clients of those can read and change them.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import groupby

from trainshed.core.accounts.audit import AuditRow
from trainshed.core.accounts.directory import (
    AccessToken,
    Account,
    AccountChange,
    AccountKind,
    RoleGrant,
    TokenRequest,
)
from trainshed.core.accounts.role import Role
from trainshed.wire.base import Message, duration, flag, output_only, part, parts, read, text, texts
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import time_text

Json = dict[str, object]
USUAL_LIFETIME = timedelta(days=90)  # of a token; 0s: until it is revoked
_CHANGEABLE = frozenset({"display_name", "disabled"})  # of an account
_PREFIX = "roles/trainshed."  # before a role, as IAM writes it


class AccountMessage(Message):
    name: str = text()
    kind: str = text()
    display_name: str = text()
    disabled: bool = flag()
    create_time = output_only()
    issuer = output_only()


class GroupMessage(Message):
    name = output_only()
    roles = output_only()
    members: tuple[str, ...] = texts()


class TokenMessage(Message):
    account: str = text()
    title: str = text()
    lifetime: timedelta = duration(USUAL_LIFETIME)
    role: str = text()
    projects: tuple[str, ...] = texts()


class BindingMessage(Message):
    role: str = text()
    members: tuple[str, ...] = texts()


class PolicyMessage(Message):
    bindings: tuple[BindingMessage, ...] = parts(BindingMessage)
    etag: str = text()
    version = output_only()


class PolicyRequest(Message):
    policy: PolicyMessage | None = part(PolicyMessage)
    update_mask: str = text()
    options = output_only(is_open=True)


def parse_account(body: object) -> tuple[str, AccountKind, str]:
    faults = Faults("account")
    message = read(AccountMessage, body, faults)
    kinds = {"": AccountKind.USER, **{str(kind): kind for kind in AccountKind}}
    if message.kind not in kinds:
        faults.lose("kind", f"must be {' or '.join(AccountKind)}, not '{message.kind[:60]}'.")
    if not message.name:
        faults.lose("name", "must be given: the name or the mail address by which roles name the account.")
    faults.settle()
    return message.name, kinds[message.kind], message.display_name


def parse_account_change(body: object, mask: str, account: Account) -> AccountChange:
    """What the body has changes, or what the update mask names; nothing else."""
    faults = Faults("account")
    message = read(AccountMessage, body, faults)
    masked = {name.strip() for name in mask.split(",") if name.strip()}
    names = {slot.attribute if (slot := AccountMessage.fields.get(name)) else name for name in masked}
    for name in sorted(names - _CHANGEABLE):
        faults.lose("update_mask", f"names '{name[:60]}', which cannot change: displayName and disabled can.")
    given = names if masked else set(vars(message))
    for name, wanted, present in (
        ("name", message.name, account.name),
        ("kind", message.kind, account.kind.value),
    ):
        if name in given and wanted != present:
            fix = "leave it out, or add another account and remove this one"
            faults.lose(name, f"is '{present}' and cannot become '{wanted[:60]}': {fix}.")
    faults.settle()
    return AccountChange(
        display_name=message.display_name if "display_name" in given else None,
        is_disabled=message.disabled if "disabled" in given else None,
    )


def parse_group(body: object) -> tuple[str, ...]:
    faults = Faults("group")
    message = read(GroupMessage, body, faults)
    faults.settle()
    return message.members


def parse_token(body: object) -> TokenRequest:
    faults = Faults("token")
    message = read(TokenMessage, body, faults)
    role = _role(message.role, "role", faults) if message.role else None
    faults.settle()
    return TokenRequest(
        account=message.account,
        title=message.title,
        lifetime=message.lifetime or None,
        role=role,
        projects=message.projects,
    )


def parse_policy(body: object, project: str) -> tuple[tuple[RoleGrant, ...], str]:
    """The grants of a whole policy, and its etag."""
    faults = Faults("request")
    message = read(PolicyRequest, body, faults)
    policy = message.policy or PolicyMessage()
    if message.policy is None:
        faults.lose("policy", "must be given.")
    grants: list[RoleGrant] = []
    for number, binding in enumerate(policy.bindings):
        role = _role(binding.role, f"policy.bindings[{number}].role", faults)
        if role is not None:
            grants += [RoleGrant(project, role, member) for member in binding.members]
    faults.settle()
    return tuple(grants), policy.etag


def _role(word: str, path: str, faults: Faults) -> Role | None:
    name = word.removeprefix(_PREFIX)
    if name in tuple(Role):
        return Role(name)
    names = ", ".join(Role)
    faults.lose(path, f"must be one of {names} (or {_PREFIX}{Role.USER} and so on), not '{word[:60]}'.")
    return None


def render_account(account: Account, grants: Iterable[RoleGrant] = ()) -> Json:
    return {
        "name": account.name,
        "kind": account.kind.value,
        "createTime": time_text(account.created_at),
        **({"displayName": account.display_name} if account.display_name else {}),
        **({"disabled": True} if account.is_disabled else {}),
        **({"issuer": account.identity.issuer} if account.identity else {}),
        "roles": _roles(grants),
    }


def render_group(name: str, members: Iterable[str], grants: Iterable[RoleGrant] = ()) -> Json:
    return {"name": name, "members": sorted(members), "roles": _roles(grants)}


def _roles(grants: Iterable[RoleGrant]) -> list[Json]:
    return [{"project": grant.project, "role": grant.role.value, "member": grant.member} for grant in grants]


def render_token(token: AccessToken, last_use: date | None = None) -> Json:
    return {
        "id": token.id,
        "account": token.account,
        "title": token.title,
        "createTime": time_text(token.created_at),
        **({"expireTime": time_text(token.expires_at)} if token.expires_at else {}),
        **({"lastUseDate": str(last_use)} if last_use else {}),
        **({"role": token.role.value} if token.role else {}),
        **({"projects": list(token.projects)} if token.projects else {}),
    }


def render_policy(grants: Iterable[RoleGrant], etag: str) -> Json:
    bindings = [
        {"role": f"{_PREFIX}{role}", "members": [grant.member for grant in of_role]}
        for role, of_role in groupby(sorted(grants), key=lambda grant: grant.role)
    ]
    return {"version": 1, "etag": etag, **({"bindings": bindings} if bindings else {})}


def render_audit_row(row: AuditRow) -> Json:
    return {
        "time": time_text(row.at),
        "who": row.who,
        **({"token": row.token} if row.token else {}),
        "address": row.address,
        "method": row.verb,
        "path": row.path,
        **({"what": row.what} if row.what else {}),
        "permission": row.permission,
        **({"project": row.project} if row.project else {}),
        "allowed": row.is_allowed,
        "code": row.code,
        **({"reason": row.reason} if row.reason else {}),
        **({"count": row.count} if row.count > 1 else {}),
    }
