"""What jobs cost, as people at a terminal and scripts see it."""

import csv
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_why import command
from tests.live import JOBS, PARENT, LiveServer, pool, python, until

PRICES = """
currency = "EUR"
[[prices]]
cpu_hour = 36
gib_hour = 3.6
"""


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prices") / "prices.toml"
    path.write_text(PRICES)
    return path


@pytest.fixture(scope="module")
def server(prices: Path) -> Iterator[LiveServer]:
    """Two jobs of two projects have ended; one was restarted, one is deleted."""
    with LiveServer("--cpus", "4", "--memory", "8GiB", "--prices", str(prices)) as server:
        second = python("import time; time.sleep(1)")
        jobs = [
            server.submit(pools=[pool(second, machine="n1-standard-1")], name=name, labels={"team": team})
            for name, team in (("one", "vision"), ("two", "speech"))
        ]
        for job in jobs:
            server.wait(job)
        server.request("DELETE", f"/v1/{jobs[1]}")
        yield server


def total(rows: list[Any], name: str) -> Decimal:
    return sum((Decimal(row[name]) for row in rows), Decimal())


def test_the_costs_of_a_month_are_those_of_its_jobs_also_of_deleted_ones(server: LiveServer):
    answer = server.get(f"{PARENT}/costs")
    assert [row["displayName"] for row in answer["rows"]] in (["one", "two"], ["two", "one"])
    for row in answer["rows"]:
        assert Decimal("0.01") < Decimal(row["cost"]) < 1
        assert Decimal(row["cpuHours"]) > Decimal(1) / 3600
        assert 0.3 < row["goodput"] <= 1
    for name in ("cost", "cpuHours", "memoryGibHours"):
        assert total(answer["rows"], name) == Decimal(answer["total"][name])
        assert total(answer["total"]["classes"], name) == Decimal(answer["total"][name])
    assert (answer["currency"], answer["totalSize"]) == ("EUR", 2)


def test_every_grouping_has_the_same_total(server: LiveServer):
    everywhere = server.get("/v1/costs")["total"]["cost"]
    for by in ("job", "user", "label:team", "class", "node", "day", "month", "project"):
        answer = server.get("/v1/costs", groupBy=by)
        assert answer["total"]["cost"] == everywhere
        assert total(answer["rows"], "cost") == Decimal(everywhere)
    teams = server.get(f"{PARENT}/costs", groupBy="label:team")["rows"]
    assert {row["group"] for row in teams} == {"vision", "speech"}


def test_costs_are_told_by_who_submitted_the_jobs_also_of_deleted_ones(server: LiveServer):
    headers = {"X-Trainshed-User": "ada"}
    body = {
        "displayName": "hers",
        "jobSpec": {"workerPoolSpecs": [pool(python("pass"), machine="n1-standard-1")]},
    }
    answers = [
        server.request("POST", JOBS.replace("/p1/", "/users/"), body, headers=headers) for _ in range(2)
    ]
    for answer in answers:
        server.wait(answer.json["name"])
    server.request("DELETE", f"/v1/{answers[0].json['name']}")
    [row] = server.get(f"{PARENT.replace('/p1/', '/users/')}/costs", groupBy="user")["rows"]
    assert row["group"] == "ada"
    done = command(server, "costs", "--by", "user", "--csv", "--project", "users")
    assert [line["group"] for line in csv.DictReader(done.stdout.splitlines())] == ["ada"]
    listed = command(server, "ls", "--user", "ada", "--json", "--project", "users")
    assert [job["submitter"] for job in json.loads(listed.stdout)] == ["ada"]
    assert "no such jobs" in command(server, "ls", "--user", 'o"ther', "--project", "users").stderr
    assert "User      ada" in command(server, "show", "hers", "--project", "users").stdout


def test_pages_belong_together(server: LiveServer):
    first = server.get(f"{PARENT}/costs", pageSize=1)
    second = server.get(f"{PARENT}/costs", pageSize=1, pageToken=first["nextPageToken"])
    assert total([*first["rows"], *second["rows"]], "cost") == Decimal(first["total"]["cost"])
    assert "nextPageToken" not in second


def test_wrong_questions_are_refused_with_every_mistake(server: LiveServer):
    refused = server.request("GET", f"{PARENT}/costs?from=yesterday&to=2026-02-30")
    assert refused.status == 400
    assert set(refused.violations) == {"from", "to"}
    assert "label:KEY" in server.request("GET", f"{PARENT}/costs?groupBy=colour").violations["groupBy"]
    assert server.request("GET", f"{JOBS}/123:costs").status == 404


def test_a_person_reads_a_table_that_adds_up(server: LiveServer):
    shown = command(server, "costs")
    assert shown.returncode == 0, shown.stderr
    header, *rows, last = shown.stdout.splitlines()
    assert header.split()[:4] == ["JOB", "NAME", "EUR", "CPU-HOURS"]
    assert len(rows) == 2 and last.startswith("TOTAL")
    assert sum(Decimal(row.split()[2]) for row in rows) == Decimal(last.split()[1])
    assert "%" in last


def test_scripts_get_json_and_csv(server: LiveServer):
    month = server.get(f"{PARENT}/costs")["from"][:7]
    answer = json.loads(command(server, "costs", "--json", "--by", "day", "--month", month).stdout)
    rows = list(csv.DictReader(command(server, "costs", "--csv", "--by", "label:team").stdout.splitlines()))
    assert total(rows, "cost") == Decimal(answer["total"]["cost"])
    assert command(server, "costs", "--month", "november").returncode == 2
    assert (
        "nothing was used from 2020-01-01 to 2020-01-31"
        in command(server, "costs", "--month", "2020-01").stdout
    )


def test_show_says_what_a_job_has_cost(server: LiveServer):
    shown = command(server, "show", "one")
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("Cost")]
    assert " EUR: " in line and "% computed" in line


def test_a_running_job_costs_more_every_moment_and_nothing_after_its_end(server: LiveServer):
    pools = [pool(python("import time; time.sleep(600)"), machine="n1-standard-1")]
    elsewhere = JOBS.replace("p1", "p2")
    job = server.post(elsewhere, {"displayName": "long", "jobSpec": {"workerPoolSpecs": pools}})["name"]
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    costs: list[Decimal] = []
    for _ in range(2):
        time.sleep(0.2)
        costs.append(Decimal(server.get(f"/v1/{job}:costs")["total"]["cost"]))
    assert costs[0] < costs[1]
    server.request("POST", f"/v1/{job}:cancel", {})
    server.wait(job)
    ended = server.get(f"/v1/{job}:costs")["total"]["cost"]
    intervals = server.get(f"/v1/{job}:intervals")["intervals"]
    assert any(interval["class"] == "COMPUTED" for interval in intervals)
    time.sleep(0.2)
    assert server.get(f"/v1/{job}:costs")["total"]["cost"] == ended


def test_prices_that_change_are_read_again_and_mistakes_leave_those_from_before(
    server: LiveServer, prices: Path
):
    before = Decimal(server.get(f"{PARENT}/costs")["total"]["cost"])
    prices.write_text(PRICES.replace("cpu_hour = 36", "cpu_hour = -1"))
    answer = server.get(f"{PARENT}/costs")
    assert f"{prices}:4: prices[0].cpu_hour must be a number" in answer["pricesError"]
    assert "the prices from before are used" in command(server, "costs").stderr
    prices.write_text(PRICES.replace("EUR", "USD").replace("36", "360").replace("3.6", "36"))
    answer = server.get(f"{PARENT}/costs")
    assert (answer["currency"], "pricesError" in answer) == ("USD", False)
    assert Decimal(answer["total"]["cost"]) > before * 5
    prices.write_text(PRICES)


def test_without_prices_nobody_sees_money_and_a_wrong_file_stops_the_start(tmp_path: Path):
    with LiveServer("--cpus", "2", "--memory", "4GiB") as plain:
        job = plain.submit(python("pass"), name="free")
        plain.wait(job)
        shown = command(plain, "costs").stdout
        assert "CPU-HOURS" in shown and "EUR" not in shown
        answer = plain.get(f"{PARENT}/costs")
        assert "cost" not in json.dumps(answer) and "currency" not in answer
        assert "CPU-hours" in command(plain, "show", "free").stdout
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('currency = "EUR"\n\n[[prices]]\ncpu_hour = 1\nhdd = 3\n')
    broken = LiveServer("--prices", str(wrong))
    with pytest.raises(AssertionError, match=r"wrong.toml:5: prices\[0\].hdd is not known"), broken:
        pass


def test_a_project_that_has_spent_its_budget_starts_no_new_job_until_it_is_raised(tmp_path: Path):
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES.replace("36", "36000") + "[budgets]\np1 = 0.01\n")
    with LiveServer("--cpus", "4", "--memory", "8GiB", "--prices", str(prices)) as server:
        small = "n1-standard-1"
        pools = [pool(python("import time; time.sleep(600)"), machine=small)]
        runs = server.submit(pools=pools, name="runs")
        server.wait_for(runs, ["JOB_STATE_RUNNING"])
        until(lambda: any(item["level"] == 100 for item in server.get(f"{PARENT}/costs")["budgets"]))
        waits = server.submit(pools=[pool(python("pass"), machine=small)], name="waits")
        until(lambda: reason(server, waits) == "BUDGET_SPENT")
        assert "BUDGET_SPENT" in command(server, "why", "waits").stdout
        assert "New jobs wait." in command(server, "costs").stderr
        assert "has spent" in server.said()
        assert server.state(runs) == "JOB_STATE_RUNNING"
        prices.write_text(PRICES + "[budgets]\np1 = 1000\n")
        assert server.wait(waits)["state"] == "JOB_STATE_SUCCEEDED"
        assert 'class="COMPUTED",resource="cpu"' in server.request("GET", "/metrics").body.decode()


def reason(server: LiveServer, job: str) -> str:
    return server.get(f"/v1/{job}:status").get("waiting", {}).get("reason", "")


def test_pages_are_of_one_report_and_a_token_of_one_that_is_gone_is_refused():
    with LiveServer("--cpus", "4", "--memory", "8GiB") as server:
        for name in ("one", "two"):
            server.wait(server.submit(python("pass"), name=name))
        first = server.get(f"{PARENT}/costs", pageSize=1)
        running = server.submit(python("import time; time.sleep(600)"), name="three")
        until(lambda: server.get(f"{PARENT}/costs", pageSize=1)["totalSize"] == 3)
        second = server.get(f"{PARENT}/costs", pageSize=1, pageToken=first["nextPageToken"])
        assert {row["displayName"] for row in first["rows"] + second["rows"]} == {"one", "two"}
        assert (second["total"], second["countedTime"]) == (first["total"], first["countedTime"])
        assert "nextPageToken" not in second
        server.cancel(running)
        for day in range(1, 10):
            answer = server.get("/v1/costs", pageSize=1, **{"from": f"2026-01-0{day}"})
            assert "nextPageToken" in answer
        answer = server.request("GET", f"{PARENT}/costs?pageSize=1&pageToken={first['nextPageToken']}")
        assert answer.status == 400
        assert "ask again from the start" in answer.violations["page_token"]
        assert len(command(server, "costs", "--csv").stdout.splitlines()) == 4
