"""accounts, groups, tokens, roles and the audit log: who may come in, what they may do, and what they did."""

from collections.abc import Iterable
from dataclasses import dataclass

from trainshed.api.call import Call, Json, Method, row
from trainshed.core.accounts.audit import AuditQuery
from trainshed.core.accounts.directory import project_fault
from trainshed.core.accounts.permission import Permission, PrincipalKind
from trainshed.core.accounts.role import EVERYWHERE
from trainshed.core.errors import Invalid, Violation
from trainshed.service.accounts import AccountService
from trainshed.wire import account as wire
from trainshed.wire.page import fingerprint

MOST_ROWS = 1000  # of the audit log in one answer
USUAL_ROWS = 100


@dataclass(slots=True)
class AccountHandlers:
    accounts: AccountService

    async def me(self, call: Call) -> Json:
        """Who the caller is."""
        principal = call.principal
        if principal.kind is not PrincipalKind.ACCOUNT:
            return {"name": principal.kind.value, "kind": principal.kind.value}
        directory = self.accounts.directory
        account, token = directory.account(principal.id), directory.token(principal.token)
        return wire.render_account(account, directory.grants_of(account)) | {
            "token": wire.render_token(token, self.accounts.last_use(token.id))
        }

    async def find(self, call: Call) -> Json:
        directory = self.accounts.directory
        rows = [wire.render_account(item, directory.grants_of(item)) for item in directory.accounts.values()]
        return {"accounts": rows}

    async def create(self, call: Call) -> Json:
        account = await self.accounts.add(*wire.parse_account(call.body))
        call.trace.what = f"adds {account.name}"
        return wire.render_account(account)

    async def get(self, call: Call) -> Json:
        directory = self.accounts.directory
        account = directory.account(call.path["account"])
        return wire.render_account(account, directory.grants_of(account))

    async def update(self, call: Call) -> Json:
        account = self.accounts.directory.account(call.path["account"])
        change = wire.parse_account_change(call.body, call.query.get("updateMask", ""), account)
        updated = self.accounts.update(account.name, change)
        done = ["renames"] if change.display_name is not None else []
        if change.is_disabled is not None:
            done.append("disables" if change.is_disabled else "enables")
        call.trace.what = f"{' and '.join(done)} {account.name}" if done else ""
        return wire.render_account(updated)

    async def unlink(self, call: Call) -> Json:
        return wire.render_account(await self.accounts.unlink(call.path["account"]))

    async def delete(self, call: Call) -> Json:
        await self.accounts.remove(call.path["account"])
        return {}

    async def groups(self, call: Call) -> Json:
        directory = self.accounts.directory
        groups = sorted(directory.groups.items())
        return {"groups": [wire.render_group(name, all, directory.grants_to(name)) for name, all in groups]}

    async def set_group(self, call: Call) -> Json:
        name = call.path["group"]
        before = self.accounts.directory.groups.get(name, frozenset())
        members = self.accounts.set_group(name, wire.parse_group(call.body))
        call.trace.what = _changed("adds", members - before, "removes", before - members)
        return wire.render_group(name, members, self.accounts.directory.grants_to(name))

    async def remove_group(self, call: Call) -> Json:
        self.accounts.remove_group(call.path["group"])
        return {}

    async def policy(self, call: Call) -> Json:
        return wire.render_policy(*self.accounts.policy(_project(call)))

    async def set_policy(self, call: Call) -> Json:
        project = _project(call)
        before = self.accounts.policy(project)[0]
        self.accounts.set_policy(project, *wire.parse_policy(call.body, project))
        after = self.accounts.policy(project)[0]
        changed = _changed(
            "gives",
            (f"{grant.role} to {grant.member}" for grant in set(after) - set(before)),
            "takes",
            (f"{grant.role} from {grant.member}" for grant in set(before) - set(after)),
        )
        where = "everywhere" if project == EVERYWHERE else f"in {project}"
        call.trace.what = f"{where}: {changed}" if changed else ""
        return await self.policy(call)

    async def tokens(self, call: Call) -> Json:
        tokens = self.accounts.tokens(call.principal, call.query.get("account", ""))
        return {"tokens": [wire.render_token(token, self.accounts.last_use(token.id)) for token in tokens]}

    async def make_token(self, call: Call) -> Json:
        """The only answer that has the token itself."""
        token, text = self.accounts.make_token(call.principal, wire.parse_token(call.body))
        limits = ", ".join((*([token.role] if token.role else []), *token.projects))
        call.trace.what = f"makes token {token.id} of {token.account}{f' ({limits})' if limits else ''}"
        return wire.render_token(token) | {"token": text}

    async def revoke(self, call: Call) -> Json:
        known = self.accounts.directory.tokens.get(call.path["token"])
        self.accounts.revoke(call.principal, call.path["token"])
        call.trace.what = f"revokes token {known.id} of {known.account}" if known is not None else ""
        return {}

    async def audited(self, call: Call) -> Json:
        who, project, only_refused = (
            call.query.get("who", ""),
            call.query.get("project", ""),
            call.flag("refused"),
        )
        mark = fingerprint("audit", who, project, str(only_refused))
        page = await self.accounts.audited(
            call.principal,
            AuditQuery(
                projects=frozenset({project}) if project else None, who=who, only_refused=only_refused
            ),
            min(call.number("pageSize") or USUAL_ROWS, MOST_ROWS),
            call.pages.decode(call.query.get("pageToken", ""), mark),
        )
        rows: Json = {"rows": [wire.render_audit_row(item) for item in page.rows]}
        return rows | call.pages.render("rows", (), page.next_place, mark)


def _changed(more: str, added: Iterable[str], less: str, removed: Iterable[str]) -> str:
    changes = ((more, sorted(added)), (less, sorted(removed)))
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in changes if names)


def _project(call: Call) -> str:
    """Without one in the path the server itself is meant."""
    project = call.path.get("project")
    if project == EVERYWHERE:
        raise Invalid((Violation("project", project_fault(project)),))
    return project or EVERYWHERE


def account_methods(accounts: AccountHandlers) -> tuple[Method, ...]:
    reads, writes, own = Permission.ACCOUNTS_READ, Permission.ACCOUNTS_WRITE, Permission.ACCOUNT_OWN
    project = "/v1/projects/{project}"
    return (
        row("GET", "/v1/accounts:me", accounts.me, own),
        row("GET", "/v1/accounts", accounts.find, reads),
        row("POST", "/v1/accounts", accounts.create, writes),
        row("POST", "/v1/accounts/{account}:unlink", accounts.unlink, writes),
        row("GET", "/v1/accounts/{account}", accounts.get, reads),
        row("PATCH", "/v1/accounts/{account}", accounts.update, writes),
        row("DELETE", "/v1/accounts/{account}", accounts.delete, writes),
        row("GET", "/v1/groups", accounts.groups, reads),
        row("PUT", "/v1/groups/{group}", accounts.set_group, writes),
        row("DELETE", "/v1/groups/{group}", accounts.remove_group, writes),
        row("GET", "/v1/tokens", accounts.tokens, own),
        row("POST", "/v1/tokens", accounts.make_token, own),
        row("DELETE", "/v1/tokens/{token}", accounts.revoke, own),
        row("POST", "/v1/server:getIamPolicy", accounts.policy, reads),
        row("POST", "/v1/server:setIamPolicy", accounts.set_policy, writes),
        row("POST", f"{project}:getIamPolicy", accounts.policy, Permission.ROLES_READ),
        row("POST", f"{project}:setIamPolicy", accounts.set_policy, Permission.ROLES_WRITE),
        row("GET", "/v1/audit", accounts.audited, Permission.AUDIT_READ),
    )
