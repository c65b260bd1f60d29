"""AuditTrail: writes down calls that change something, and those that were refused. For `api/app.py`."""

from collections.abc import Callable
from dataclasses import dataclass

from trainshed.api.call import Method
from trainshed.core.account_token import without_secret
from trainshed.core.audit import AuditLog, AuditRow, is_audited
from trainshed.core.permission import Principal
from trainshed.core.ports import Clock


@dataclass(frozen=True, slots=True)
class AuditTrail:
    log: AuditLog
    clock: Clock

    def note(
        self,
        principal: Principal,
        method: Method,
        answer: tuple[int, str],
        asked: Callable[[], tuple[str, str, str]],
    ) -> None:
        """`answer` is its status, and the sentence of a refusal. `asked` tells address, path and project.

        It is asked only for calls that are written down: most are not.
        """
        code, reason = answer
        if not is_audited(principal, method.permission, method.verb, code):
            return
        address, path, project = asked()
        self.log.append(
            AuditRow(
                at=self.clock.now(),
                who=str(principal),
                token=principal.token,
                address=address,
                verb=method.verb,
                path=without_secret(path),
                permission=method.permission.value,
                project=project,
                code=code,
                reason=without_secret(reason),
            )
        )
