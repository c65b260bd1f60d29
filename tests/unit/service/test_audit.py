"""Who may read which rows of the audit log, and what the reading keeps from nobody else."""

import asyncio
import threading
import time
from pathlib import Path

from tests.builders import T0
from tests.id_tokens import StepClock
from trainshed.core.accounts.audit import AuditPage, AuditPlace, AuditQuery, AuditRow
from trainshed.core.accounts.permission import OWNER, Permission, Principal, PrincipalKind
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.service.accounts import AccountService

AUDITS = frozenset({Permission.AUDIT_READ})
EVE = Principal(
    PrincipalKind.ACCOUNT, "eve", by_project={"speech": AUDITS, "vision": frozenset({Permission.JOBS_LIST})}
)


class SlowLog:
    """Each reading takes until it is let go."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.running = self.most = self.ended = 0

    def append(self, row: AuditRow) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        pass

    def read(self, query: AuditQuery, limit: int, place: AuditPlace | None = None) -> AuditPage:
        self.running += 1
        self.most = max(self.most, self.running)
        self.may_end.wait(10)
        self.running -= 1
        self.ended += 1
        return AuditPage((), None)


async def test_the_log_is_read_beside_the_event_loop_by_one_at_a_time(tmp_path: Path):
    log = SlowLog()
    accounts = AccountService(DirectoryFile(tmp_path / "accounts.json"), log, StepClock())
    began = time.monotonic()
    readers = [asyncio.create_task(accounts.audited(OWNER, AuditQuery(), 1)) for _ in range(3)]
    await asyncio.sleep(0.05)
    assert time.monotonic() - began < 5 and log.ended == 0
    log.may_end.set()
    await asyncio.gather(*readers)
    assert (log.ended, log.most) == (3, 1)


async def test_an_administrator_of_a_project_reads_its_rows_and_no_others(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    for project in ("speech", "vision", "", "other"):
        log.append(
            AuditRow(
                at=T0,
                who="account ann",
                token="1",
                address="",
                verb="POST",
                path="/",
                permission="jobs.create",
                project=project,
                code=200,
            )
        )
    accounts = AccountService(DirectoryFile(tmp_path / "accounts.json"), log, StepClock())

    async def projects(principal: Principal, *asked: str) -> list[str]:
        query = AuditQuery(projects=frozenset(asked) if asked else None)
        return [row.project for row in (await accounts.audited(principal, query, 10)).rows]

    assert await projects(OWNER) == ["other", "", "vision", "speech"]
    assert await projects(OWNER, "vision") == ["vision"]
    assert await projects(EVE) == ["speech"]
    assert await projects(EVE, "vision") == []
