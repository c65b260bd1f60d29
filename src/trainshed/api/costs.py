"""costs: what jobs used and what that cost, of the server, of a project or of one job. Our own methods."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from trainshed.api.call import Call, Json
from trainshed.core.accounts.permission import Permission, Principal
from trainshed.core.budget import Spending
from trainshed.core.costs import GroupBy
from trainshed.core.errors import Violation
from trainshed.service.costs import CostQuestion, CostReport, CostService, month_of
from trainshed.wire.costs import parse_days, parse_group_by, render_row, render_spending, render_total
from trainshed.wire.faults import invalid
from trainshed.wire.page import fingerprint, parse_size
from trainshed.wire.scalars import time_text

MISTAKE = "their file has a mistake, which admins everywhere are told."
GONE = "is of a report that is no longer kept: ask again from the start, without a page_token."


@dataclass(slots=True)
class CostHandlers:
    service: CostService
    spendings: Callable[[str], Iterable[Spending]]  # of a project, "-" for all; of this month

    async def find(self, call: Call) -> Json:
        """The rows of one page, the largest first or in order of time, and the total of all pages."""
        project, location = call.path.get("project", "-"), call.path.get("location", "-")
        asked = call.query.get("groupBy", "job")
        by, label = parse_group_by(asked)
        since, until = self._days(call)
        question = CostQuestion(
            project=project, location=location, since=since, until=until, by=by, label=label
        )
        mark = fingerprint("costs", project, location, asked, str(since), str(until))
        cursor = call.pages.decode(call.query.get("pageToken", ""), mark)
        first, most = 0 if cursor is None else int(cursor[0]), parse_size(call.query.get("pageSize"))
        report = await self.service.report(question) if cursor is None else self._same(question, cursor[1])
        rows = report.rows(first, most)
        names = await self.service.names(rows) if by is GroupBy.JOB else dict[str, str]()
        following = None
        if first + most < len(report.groups):
            following = str(first + most), report.counted_at.isoformat()
            self.service.keep(report)
        rendered = [render_row(row, report.prices, names) for row in rows]
        budgets = [render_spending(item) for item in self.spendings(project)]
        return {
            "from": str(since),
            "to": str(until),
            "groupBy": asked,
            **_common(report, call.principal),
            **call.pages.render("rows", rendered, following, mark),
            "totalSize": len(report.groups),
            **({"budgets": budgets} if budgets else {}),
        }

    def _same(self, question: CostQuestion, counted_at: str) -> CostReport:
        """The report that the page before is of: in another one the rows have another order."""
        try:
            report = self.service.kept(question, datetime.fromisoformat(counted_at))
        except ValueError:  # a token of an older version
            report = None
        if report is None:
            raise invalid((Violation("page_token", GONE),))
        return report

    async def of_job(self, call: Call) -> Json:
        """Of one job, from its submit up to now; also of a deleted one."""
        path = call.path
        report = await self.service.of_job(path["project"], path["location"], path["job"])
        if not report.groups:
            await self.service.store.get(path["project"], path["location"], path["job"])
        return _common(report, call.principal)

    def _days(self, call: Call) -> tuple[date, date]:
        """This month, where nothing is asked for; from a day alone: until today."""
        now = self.service.clock.now()
        month, first = month_of(now), call.query.get("from", "")
        until = now.date() + timedelta(days=1) if first else month[1]
        return parse_days(first, call.query.get("to", ""), (month[0], until))


def _common(report: CostReport, principal: Principal) -> Json:
    answer: Json = {
        "countedTime": time_text(report.counted_at),
        "total": render_total(report.total, report.prices),
    }
    if report.prices is not None:
        answer["currency"] = report.prices.currency
        if report.sums.unpriced:
            answer["unpriced"] = sorted(report.sums.unpriced)
    if report.mistake:
        is_admin = Permission.ACCOUNTS_WRITE in principal.rights  # others are not told of files of the server
        answer["pricesError"] = report.mistake if is_admin else MISTAKE
    return answer
