"""The audit log in its files."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.builders import T0
from trainshed.core.audit import AuditRow, is_audited
from trainshed.core.permission import OWNER, Permission, principal_of_job
from trainshed.identity.audit_files import MOST_REFUSED, AuditFiles

ROW = AuditRow(
    at=T0,
    who="account ann",
    token="1",
    address="127.0.0.1",
    verb="POST",
    path="/v1/projects/p1/locations/l/customJobs",
    permission="jobs.create",
    project="p1",
    code=200,
)


def test_rows_come_back_the_newest_first_also_to_the_next_server(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    rows = [replace(ROW, at=T0 + timedelta(days=9 * n), path=f"/{n}" + "ä" * n * 97) for n in range(300)]
    for row in rows:
        log.append(row)
    expected = [replace(row, path=row.path[:1000]) for row in reversed(rows)]
    assert list(AuditFiles(tmp_path / "audit").newest()) == expected
    assert len(list((tmp_path / "audit").iterdir())) > 80


def test_a_line_that_was_cut_off_or_damaged_costs_itself_alone(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    log.append(ROW)
    [path] = (tmp_path / "audit").iterdir()
    with path.open("a") as file:
        file.write('{"at": "yesterday"}\n[]\n{"at"')
    assert list(log.newest()) == [ROW]


def test_what_is_refused_without_end_does_not_fill_the_disk(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    for _ in range(10 * MOST_REFUSED):
        log.append(replace(ROW, code=401, token=""))
    log.append(ROW)
    log.append(replace(ROW, code=403))
    log.append(replace(ROW, code=403, token="", at=T0 + timedelta(seconds=1)))
    assert [row.code for row in log.newest()] == [403, 403, 200, *[401] * MOST_REFUSED]


def test_a_server_to_which_nothing_happened_has_no_log(tmp_path: Path):
    assert list(AuditFiles(tmp_path / "audit").newest()) == [] and not any(tmp_path.iterdir())


def test_a_disk_that_is_full_stops_no_call(tmp_path: Path):
    (tmp_path / "audit").write_text("in its place")
    AuditFiles(tmp_path / "audit").append(ROW)


def test_changes_and_refusals_are_written_down_and_nothing_else():
    job = principal_of_job("1", "p1")
    assert is_audited(OWNER, Permission.JOBS_CREATE, "POST", 200)
    assert is_audited(OWNER, Permission.JOBS_SHELL, "POST", 200)
    assert is_audited(OWNER, Permission.OBJECTS_WRITE, "DELETE", 204)
    assert is_audited(OWNER, Permission.JOBS_GET, "GET", 403)
    assert not is_audited(OWNER, Permission.JOBS_GET, "GET", 200)
    assert not is_audited(OWNER, Permission.LOGS_READ, "POST", 200)
    assert not is_audited(OWNER, Permission.OBJECTS_BATCH, "POST", 200)
    assert not is_audited(job, Permission.OBJECTS_WRITE, "POST", 200)
