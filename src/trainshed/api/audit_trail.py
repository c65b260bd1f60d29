"""AuditTrail: writes down calls that change something, and those that were refused. For `api/app.py`."""

from dataclasses import dataclass

from trainshed.api.call import Method
from trainshed.core.account_token import without_secret
from trainshed.core.audit import AuditLog, AuditRow, is_audited
from trainshed.core.permission import Principal
from trainshed.core.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedCall:
    """What is written down of a call, whoever makes it."""

    method: Method
    address: str  # where it came from
    path: str
    project: str


@dataclass(frozen=True, slots=True)
class AuditTrail:
    log: AuditLog
    clock: Clock

    def note(self, principal: Principal, call: AuditedCall, code: int, reason: str = "") -> None:
        """`code` is the status of its answer."""
        permission = call.method.permission
        if is_audited(principal, permission, call.method.verb, code):
            row = AuditRow(
                at=self.clock.now(),
                who=str(principal),
                token=principal.token,
                address=call.address,
                verb=call.method.verb,
                path=without_secret(call.path),
                permission=permission.value,
                project=call.project,
                code=code,
                reason=without_secret(reason),
            )
            self.log.append(row)
