"""`trainshed costs`: what jobs used in a time, what it cost, and how much of it they computed."""

import csv
import io
import json
import re
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

import click

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.options import connected
from trainshed.cli.spreadsheet import cell
from trainshed.client import Client, Json

BY = re.compile(r"job|user|class|node|day|month|project|label:.+")
MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
MONEY, CPUS, MEMORY, GPUS = "cost", "cpuHours", "memoryGibHours", "gpuHours"
REST = 0.005  # smaller shares are not worth a word


@click.command("costs", short_help="Show what jobs used and cost, and how much of it they computed.")
@click.option("--month", metavar="YYYY-MM", help="A month. [default: this one]")
@click.option("--from", "since", metavar="DAY", help="The first day, such as 2026-11-01.")
@click.option("--to", "until", metavar="DAY", help="The last day. [default: today]")
@click.option(
    "--by",
    metavar="WHAT",
    default="job",
    show_default=True,
    help="job, user, label:KEY, class (of time), node, day, month, or project: of the whole server.",
)
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=50, help="At most N rows. [default: 50]"
)
@click.option("--csv", "form", flag_value="csv", help="Print all rows as CSV, for spreadsheets.")
@click.option("--json", "form", flag_value="json", help="Print JSON, for scripts.")
@connected
def command(
    client: Client,
    month: str | None,
    since: str | None,
    until: str | None,
    by: str,
    limit: int,
    form: str | None,
) -> None:
    """Show what jobs used and cost, and how much of it they computed.

    Time counts while a job holds resources, up to the end of its last replica. Days are those of UTC. Money
    is shown where the server has prices: trainshed up --prices FILE.

    \b
    Example:
      trainshed costs --month 2026-11 --by label:team
      trainshed costs --from 2026-11-01 --to 2026-11-07 --by day --csv
      trainshed costs --by project
    """
    if not BY.fullmatch(by):
        known = "job, user, label:KEY, class, node, day, month and project"
        raise Misuse(f"--by {by} is not known; there are {known}")
    first, after = _days(month, since, until)
    location = click.get_current_context().params.get("location")
    everywhere = by == "project" or client.project == "-"
    costs = client.costs("" if everywhere and not location else location or "-")
    answer = costs.find(by=by, since=first, until=after, limit=None if form else limit)
    if form == "json":
        click.echo(json.dumps(answer, indent=2))
    elif form == "csv":
        click.echo(_csv(answer), nl=False)
    else:
        click.echo(drawn(answer))
        for line in notes(answer):
            click.echo(line, err=True)


def _days(month: str | None, since: str | None, until: str | None) -> tuple[str | None, str | None]:
    """The first day, and the first after the last; what nobody said is left to the server."""
    if month:
        if since or until:
            raise Misuse("--month does not go with --from and --to")
        match = MONTH.fullmatch(month)
        if match is None:
            raise Misuse(f"--month must be a month such as 2026-11, not {month}")
        try:
            begin = date(int(match[1]), int(match[2]), 1)
            return str(begin), str((begin + timedelta(days=31)).replace(day=1))
        except (ValueError, OverflowError) as error:
            raise Misuse(f"--month {month} is out of range: there are no such days") from error
    try:
        after = str(date.fromisoformat(until) + timedelta(days=1)) if until else None
    except (ValueError, OverflowError) as error:
        raise Misuse(f"--to must be a day such as 2026-11-30, not {until}") from error
    return since, after


def drawn(answer: Json) -> str:
    from trainshed.cli.table import table

    rows: list[Json] = words.parts(answer, "rows")
    if not rows:
        return f"nothing was used {_span(answer)}"
    every = [*rows, *_others(answer, rows)]
    total, by = words.part(answer, "total"), str(answer["groupBy"])
    currency = str(answer.get("currency") or "")
    headers = [by.removeprefix("label:").upper(), "NAME", "PROJECT", currency, "CPU-HOURS", "GIB-HOURS"]
    headers += ["GPU-HOURS", "COMPUTED", "THE REST"]
    columns = [_column([*every, total], name) for name in (MONEY, CPUS, MEMORY, GPUS)]
    projects = {row.get("project") for row in rows}
    lines = [
        [
            str(row["group"]) or "(none)",
            str(row.get("displayName") or ""),
            str(row.get("project") or "") if len(projects) > 1 else "",
            *(column[at] for column in columns),
            *_goodput(row),
        ]
        for at, row in enumerate(every)
    ]
    lines.append(["TOTAL", "", "", *(column[-1] for column in columns), *_goodput(total)])
    return table(headers, lines)


def _others(answer: Json, rows: list[Json]) -> list[Json]:
    """One row for all that are not listed, so that the column adds up."""
    left, total = int(answer.get("totalSize", 0)) - len(rows), words.part(answer, "total")
    if left <= 0:
        return []
    names = [name for name in (MONEY, CPUS, MEMORY, GPUS) if name in total]
    rest = {name: str(Decimal(total[name]) - sum(Decimal(row[name]) for row in rows)) for name in names}
    return [{"group": f"({left} more)", **rest}]


def _column(rows: list[Json], name: str) -> list[str]:
    """The texts of a column: the parts are rounded so that they add up to the total, the last one."""
    if not any(Decimal(row.get(name) or 0) for row in rows):
        return [""] * len(rows)
    *parts, total = (Decimal(row.get(name) or 0) for row in rows)
    step = Decimal("0.01") if total >= 1 else Decimal("0.0001")
    texts: list[str] = []
    exact = shown = Decimal(0)
    for part in parts:
        exact += part
        after = exact.quantize(step, ROUND_HALF_EVEN)
        texts.append(str(after - shown))
        shown = after
    return [*texts, str(total.quantize(step, ROUND_HALF_EVEN))]


def _goodput(row: Json) -> list[str]:
    if "goodput" not in row:
        return ["", ""]
    rest = [part for part in words.parts(row, "classes") if part["class"] != "COMPUTED"]
    return [_percent(row["goodput"]), ", ".join(map(_share, filter(_is_worth, rest)))]


def _is_worth(part: Json) -> bool:
    return float(part["share"]) >= REST


def _share(part: Json) -> str:
    return f"{_percent(part['share'])} {str(part['class']).lower().replace('_', ' ')}"


def _percent(share: object) -> str:
    return f"{float(str(share)) * 100:.0f} %"


def notes(answer: Json) -> list[str]:
    """What there is to say about prices and budgets."""
    lines: list[str] = []
    for budget in words.parts(answer, "budgets"):
        if budget.get("level"):
            lines.append(str(budget["message"]) + (" New jobs wait." if int(budget["level"]) >= 100 else ""))
    if unpriced := words.parts(answer, "unpriced"):
        lines.append(f"without a price, and so without cost: {', '.join(map(str, unpriced))}")
    if mistake := answer.get("pricesError"):
        lines.append(f"the prices from before are used: {mistake}")
    return lines


def sentence(costs: Json) -> str:
    """Of one job: `1.23 EUR: 84 % computed, 16 % set up`; hours, where there are no prices."""
    total = words.part(costs, "total")
    classes = words.parts(total, "classes")
    if not classes:
        return ""
    if costs.get("currency"):
        what = f"{_column([{}, total], MONEY)[-1] or '0.00'} {costs['currency']}"
    else:
        hours = ((CPUS, "CPU-hours"), (MEMORY, "GiB-hours"), (GPUS, "GPU-hours"))
        what = ", ".join(f"{text} {word}" for name, word in hours if (text := _column([{}, total], name)[-1]))
    return f"{what}: {', '.join(map(_share, filter(_is_worth, classes)))}"


def _csv(answer: Json) -> str:
    """All rows and no total: a spreadsheet adds up by itself."""
    text = io.StringIO()
    names = ["group", "displayName", "project", MONEY, CPUS, MEMORY, GPUS, "goodput"]
    if not answer.get("currency"):
        names.remove(MONEY)
    writer = csv.DictWriter(text, [*names, "currency"], lineterminator="\n")
    writer.writeheader()
    for row in words.parts(answer, "rows"):
        texts = {name: cell(str(row.get(name, ""))) for name in names}
        writer.writerow({**texts, "currency": answer.get("currency", "")})
    return text.getvalue()


def _span(answer: Json) -> str:
    last = date.fromisoformat(str(answer["to"])) - timedelta(days=1)
    return f"from {answer['from']} to {last}"
