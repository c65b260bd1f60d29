"""AuditTrail: writes down calls that change something, and those that were refused. For `api/app.py`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainshed.api.call import Method, Trace
from trainshed.core.accounts.account_token import without_secret
from trainshed.core.accounts.audit import AuditLog, AuditRow, is_audited
from trainshed.core.accounts.permission import Permission, Principal, PrincipalKind
from trainshed.core.ports import Clock

_OF_LISTS = (Permission.BUCKETS_LIST, Permission.BUCKETS_WRITE)  # these name their project in the query


@dataclass(frozen=True, slots=True)
class AuditTrail:
    log: AuditLog
    clock: Clock
    has_accounts: Callable[[], bool] = lambda: False  # of whom some read the rows of their projects only

    def note(self, principal: Principal, method: Method | None, trace: Trace, code: int) -> None:
        """`code` is the status of the answer; without a method no row of the table was meant."""
        for part in trace.parts:
            self.note(principal, *part)
        permission = method.permission if method is not None else Permission.PUBLIC
        if trace.who is None and not is_audited(principal, permission, trace.verb, code):
            return
        who = trace.who or principal
        self.log.append(
            AuditRow(
                at=self.clock.now(),
                who=str(who),
                token=who.token,
                address=trace.address,
                verb=trace.verb,
                path=without_secret(trace.path),
                permission=permission.value,
                # Whoever is not known may name any project: its administrators are not to read that.
                project="" if who.kind is PrincipalKind.ANONYMOUS else trace.project,
                code=code,
                reason=without_secret(trace.reason),
                what=trace.what,
            )
        )


def named_project(method: Method, path: Mapping[str, str], query: Mapping[str, str]) -> str:
    """The project that a call names; whose a bucket is comes to light when it is looked up."""
    if method.permission in _OF_LISTS and "bucket" not in path:
        return query.get("project", "")
    return path.get("project", "")
