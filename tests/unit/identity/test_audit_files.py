"""The audit log in its files."""

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from tests.builders import T0
from trainshed.core.accounts.audit import AuditPlace, AuditQuery, AuditRow, is_audited
from trainshed.core.accounts.permission import OWNER, Permission, principal_of_job
from trainshed.identity import audit_pages, audit_refusals
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.audit_line import line_of
from trainshed.identity.audit_refusals import ALIKE

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

ALL = AuditQuery()


def newest(log: AuditFiles, query: AuditQuery = ALL, limit: int = 1000) -> Iterator[AuditRow]:
    """All rows that fit, page by page."""
    place: AuditPlace | None = None
    while True:
        page = log.read(query, limit, place)
        yield from page.rows
        if (place := page.next_place) is None:
            return


def test_rows_come_back_the_newest_first_also_to_the_next_server(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    rows = [replace(ROW, at=T0 + timedelta(days=9 * n), path=f"/{n}" + "ä" * n * 97) for n in range(300)]
    for row in rows:
        log.append(row)
    expected = [replace(row, path=row.path[:1000]) for row in reversed(rows)]
    assert list(newest(AuditFiles(tmp_path / "audit"))) == expected
    assert len(list((tmp_path / "audit").iterdir())) > 80


def test_a_line_that_was_cut_off_or_damaged_costs_itself_alone(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    log.append(ROW)
    [path] = (tmp_path / "audit").iterdir()
    with path.open("a") as file:
        file.write('{"at": "yesterday"}\n[]\n{"at"')
    assert list(newest(log)) == [ROW]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_pages_have_each_row_that_fits_once_also_while_rows_are_added(tmp_path: Path, limit: int):
    log = AuditFiles(tmp_path / "audit")
    projects = ("p1", 'p"\\1', "", "ü\n")
    rows = [
        replace(
            ROW,
            at=T0 + timedelta(days=n // 3),
            project=projects[n % 4],
            who=f"account {'ann' if n % 3 else 'an'}",
            code=403 if n % 5 == 0 else 200,
            path=f"/{n}" + '"project": "p1", "code": 403' * (n % 2),
        )
        for n in range(200)
    ]
    for row in rows:
        log.append(row)
    for query in (
        ALL,
        *(AuditQuery(projects=frozenset({name})) for name in (*projects, "other")),
        AuditQuery(who="an"),
        AuditQuery(who="an", only_refused=True, projects=frozenset({"p1", ""})),
    ):
        expected = [row for row in newest(log) if query.fits(row)]
        pages = newest(log, query, limit)
        found = list(islice(pages, 3))
        log.append(replace(ROW, at=rows[-1].at, path="/late"))
        assert [*found, *pages] == expected, query


def test_a_page_looks_at_so_much_of_a_long_log_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit_pages, "MOST_LOOKED", 5000)
    log = AuditFiles(tmp_path / "audit")
    log.append(ROW)
    for _ in range(1000):
        log.append(replace(ROW, project="p2"))
    query = AuditQuery(projects=frozenset({"p1"}))
    first = log.read(query, 10)
    assert first.rows == () and first.next_place is not None
    assert list(newest(log, query, 10)) == [ROW]


def test_rows_of_other_projects_are_not_even_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log, taken = AuditFiles(tmp_path / "audit"), list[bytes]()
    for n in range(100):
        log.append(replace(ROW, project="p1" if n == 50 else "p2"))

    def row(line: bytes) -> AuditRow:
        taken.append(line)
        return replace(ROW, project="p1")

    monkeypatch.setattr(audit_pages, "row_of", row)
    assert list(newest(log, AuditQuery(projects=frozenset({"p1"})))) == [ROW]
    assert len(taken) == 1


REFUSED = replace(ROW, who="anonymous", token="", code=401, project="")


def test_calls_that_are_refused_alike_are_one_row_at_once_and_one_with_their_count(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    for n in range(500):
        log.append(replace(REFUSED, at=T0 + timedelta(milliseconds=n)))
    log.append(ROW)
    assert list(newest(log)) == [ROW, REFUSED]
    log.settle()
    log.settle()
    counted = replace(REFUSED, at=T0 + timedelta(milliseconds=499), count=499)
    assert list(newest(log)) == [counted, ROW, REFUSED]
    log.append(REFUSED)
    later = replace(REFUSED, at=T0 + ALIKE)
    log.append(later)
    assert list(newest(log))[:2] == [later, REFUSED]
    log.append(replace(REFUSED, at=later.at, address="other"))
    assert next(newest(log)).address == "other"


def test_what_nobody_known_sends_has_few_characters_in_the_log(tmp_path: Path):
    log = AuditFiles(tmp_path / "audit")
    log.append(replace(REFUSED, path="/" + "x" * 5000, reason="y" * 5000))
    log.append(replace(ROW, path="/" + "x" * 5000))
    known, nobody = newest(log)
    assert (len(nobody.path), len(nobody.reason), len(known.path)) == (100, 100, 1000)


def test_what_is_refused_without_end_fills_so_much_of_a_disk_in_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit_refusals, "MOST_A_DAY", 20_000)
    log = AuditFiles(tmp_path / "audit")
    for n in range(5000):
        log.append(replace(REFUSED, path=f"/{n}\udcff" + "ä" * 50))
    size = sum(file.stat().st_size for file in (tmp_path / "audit").iterdir())
    assert 15_000 < size < 21_000
    assert "too many" in next(newest(log)).reason
    log.append(ROW)
    of_account, of_job = replace(ROW, code=403), replace(ROW, code=403, token="", who="job 1")
    for row in (of_account, of_account, of_job, tomorrow := replace(REFUSED, at=T0 + timedelta(days=1))):
        log.append(row)
    assert list(islice(newest(log), 5)) == [tomorrow, of_job, of_account, of_account, ROW]


def test_a_line_that_a_full_disk_cut_off_is_not_one_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log, write, room = AuditFiles(tmp_path / "audit"), os.write, [700]

    def write_while_there_is_room(handle: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(handle, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write_while_there_is_room)
    rows = [replace(ROW, path=f"/{n}") for n in range(7)]
    for row in rows[:5]:
        log.append(row)
    room[0] = 10_000
    log.append(rows[5])
    whole = 700 // len(line_of(rows[0]))
    assert whole < 5 and list(newest(log)) == [rows[5], *reversed(rows[:whole])]
    [file] = (tmp_path / "audit").iterdir()
    file.write_bytes(file.read_bytes() + b'{"at": "2')
    AuditFiles(tmp_path / "audit").append(rows[6])
    assert next(newest(log)) == rows[6]


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path):
    log, folder = AuditFiles(tmp_path / "audit"), tmp_path / "audit"
    log.append(ROW)
    [file] = folder.iterdir()
    file.rename(folder / f"{file.name}.1")
    for _ in range(2):
        log.append(replace(ROW, path="/after"))
    assert [row.path for row in newest(log)] == ["/after", "/after"]
    file.unlink()
    folder.rename(tmp_path / "moved")
    log.append(replace(ROW, path="/again"))
    assert [row.path for row in newest(log)] == ["/again"]


def test_a_server_to_which_nothing_happened_has_no_log(tmp_path: Path):
    assert list(newest(AuditFiles(tmp_path / "audit"))) == [] and not any(tmp_path.iterdir())


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
