"""Graphs of a job and comparisons of jobs in a real Chromium: read, zoomed, marked, sent on as links."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe_in_both_themes
from tests.live import JOBS, LiveServer, pool, python, until

HOSTILE = "<img src=x onerror=alert(1)>"
RUNS = python(
    "import time\nfrom trainshed import report\nfor step in range(1, 10**6):\n"
    f"    report.step(step, loss=1 / step, **{{{HOSTILE!r}: 1}})\n    time.sleep(0.5)"
)
SHORT = (
    "import time\nfrom trainshed import report\n"
    "for step in range(1, 11): report.step(step, loss={rate} / step); time.sleep(0.6)"
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "512GiB") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    """The full name of a job with two replicas that run, and of which there are samples."""
    name = server.submit(pools=[pool(RUNS, replicas=2)], name="with graphs")
    until(lambda: len(server.get(f"/v1/{name}:graphs")["usage"]["times"]) >= 4)
    return name


@pytest.fixture(scope="module")
def sweep(server: LiveServer) -> list[str]:
    """The full names of ended jobs that differ in a label and an option."""
    names: list[str] = []
    for number, kind in enumerate(("adam", "adam", "sgd")):
        command = [*python(SHORT.format(rate=number + 1)), f"--lr={number}"]
        spec = {"workerPoolSpecs": [pool(command)]}
        body = {"displayName": f"sweep {number}", "labels": {"opt": kind}, "jobSpec": spec}
        names.append(server.request("POST", JOBS, body).json["name"])
    for name in names:
        server.wait(name)
        server.get(f"/v1/{name}:metrics")
    return names


def address_of(name: str, tab: str = "graphs") -> str:
    _, project, _, location, _, job = name.split("/")
    return f"/console/jobs/{project}/{location}/{job}/{tab}"


def graph(page: Page, title: str) -> Locator:
    return page.get_by_role("figure", name=re.compile(re.escape(f"Graph of {title}")))


def is_drawn(plot: Locator) -> None:
    """A canvas with a line in it: some pixels have colour."""
    plot.scroll_into_view_if_needed()  # a graph is drawn when it comes near
    expect(plot.locator("canvas")).to_be_visible()
    count = """canvas => { const {width, height} = canvas;
        const data = canvas.getContext("2d").getImageData(0, 0, width, height).data; let count = 0;
        for (let at = 0; at < data.length; at += 4)
            count += data[at + 3] > 0 && Math.abs(data[at] - data[at + 2]) > 40;
        return count; }"""
    until(lambda: plot.locator("canvas").evaluate(count) > 20)


@ON_BOTH_SCREENS
def test_a_person_reads_zooms_marks_and_sends_graphs_of_a_job(
    console: Page, job: str, screen: Screen
) -> None:
    console.goto(address_of(job))
    for title in ("CPU", "Memory", "Disk, written"):
        is_drawn(graph(console, title))
    graph(console, "loss").scroll_into_view_if_needed()
    is_drawn(graph(console, "loss"))
    expect(graph(console, HOSTILE)).to_be_visible()  # its name is text
    # one crosshair: a pointer over one graph tells the moment in another
    cpu = graph(console, "CPU").locator(".u-over")
    cpu.scroll_into_view_if_needed()
    cpu.hover()
    expect(graph(console, "Memory").locator(".plot-words")).to_have_text(re.compile(r"\d+:\d+:\d+.*MiB"))
    # a replica is marked from the legend
    console.get_by_role("list", name="Replicas").get_by_role("button", name="workerpool0-1").hover()
    expect(console.get_by_role("button", name="workerpool0-0")).to_have_class(re.compile("faint"))
    # a drag narrows the range, and the link has it
    box = cpu.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    console.mouse.move(box["x"] + box["width"] * 0.3, middle)
    console.mouse.down()
    console.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=5)
    console.mouse.up()
    expect(console).to_have_url(re.compile(r"from=.*&to="))
    link = console.url
    before = console.url
    console.keyboard.down("Shift")
    console.mouse.down()
    console.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=5)
    console.mouse.up()
    console.keyboard.up("Shift")
    console.wait_for_function("before => location.href !== before", arg=before)
    console.goto(link)
    expect(console.get_by_role("button", name="The whole job")).to_be_visible()
    is_drawn(graph(console, "Memory"))
    graph(console, "CPU").locator(".u-over").dblclick()
    expect(console).not_to_have_url(re.compile("from="))
    # together, filtered, as a table
    console.get_by_role("combobox", name="Replicas").select_option("sum")
    console.get_by_label("Filter graphs by name").fill("mem")
    expect(graph(console, "CPU")).to_have_count(0)
    console.get_by_text("Numbers as a table").click()
    expect(console.get_by_role("row", name=re.compile("Memory.* all together"))).to_be_visible()
    # a click on a moment leads to its log
    console.get_by_label("Filter graphs by name").fill("")
    with console.expect_navigation(url=re.compile(r"/logs\?time=20")):  # the log replaces it by a line soon
        graph(console, "CPU").locator(".u-over").click()


def test_a_link_to_one_replica_shows_its_lines_alone(console: Page, job: str) -> None:
    console.goto(address_of(job, "").rstrip("/"))
    console.get_by_role("link", name="graphs of workerpool0-1").click()
    is_drawn(graph(console, "CPU"))
    expect(console.get_by_role("combobox", name="Replicas")).to_have_value("only workerpool0-1")
    console.get_by_text("Numbers as a table").click()
    expect(console.get_by_role("row", name=re.compile("CPU.* workerpool0-1"))).to_be_visible()
    expect(console.get_by_role("row", name=re.compile("workerpool0-0"))).to_have_count(0)
    console.get_by_role("combobox", name="Replicas").select_option("each")
    expect(console).not_to_have_url(re.compile("task="))
    expect(console.get_by_role("row", name=re.compile("CPU.* workerpool0-0"))).to_be_visible()


def test_stored_checkpoints_are_marked(console: Page, server: LiveServer) -> None:
    server.post("/storage/v1/b", {"name": "checkpoints"}, project="p1")
    stores = python(
        "import os, time\nfolder = os.environ['AIP_CHECKPOINT_DIR'].replace('gs://', '/gcs/') + 'step-7'\n"
        "os.makedirs(folder); open(folder + '/weights', 'w').write('w'); time.sleep(1000)"
    )
    output = {"baseOutputDirectory": {"outputUriPrefix": "gs://checkpoints/run"}}
    name = server.submit(pools=[pool(stores)], name="stores", spec=output)
    until(lambda: server.get(f"/v1/{name}:results").get("checkpoints"))
    console.goto(address_of(name))
    console.get_by_text("Marks (").click()
    expect(console.get_by_role("listitem").filter(has_text="checkpoint stored")).to_contain_text("step-7")
    server.cancel(name)


def test_graphs_grow_while_the_job_runs_and_nothing_polls(console: Page, job: str) -> None:
    asked: list[str] = []
    console.goto(address_of(job))
    is_drawn(graph(console, "CPU"))
    console.on("request", lambda request: asked.append(request.url))
    with console.expect_response(lambda answer: ":graphs" in answer.url) as first:
        pass
    with console.expect_response(lambda answer: ":graphs" in answer.url) as second:
        pass
    times = [answer.value.json()["usage"]["times"][-1] for answer in (first, second)]
    assert times[0] < times[1]
    assert not [url for url in asked if ":graphs" not in url and ":watch" not in url]


@ON_BOTH_SCREENS
def test_a_person_compares_jobs_by_curves_bands_and_settings(
    console: Page, sweep: list[str], screen: Screen
) -> None:
    console.goto(f"/console/compare?jobs={','.join(sweep)}")
    is_drawn(graph(console, "loss"))
    expect(console.get_by_role("heading", name="Compare 3 jobs")).to_be_visible()
    row = console.get_by_role("row", name=re.compile("sweep 2"))
    expect(row.get_by_role("cell", name="0.3", exact=True).first).to_be_visible()  # the last loss
    expect(console.get_by_role("columnheader", name="args.lr")).to_be_attached()
    row.hover()
    expect(row).to_have_class(re.compile("marked"))
    console.get_by_label("Group by label").select_option("opt")
    expect(console).to_have_url(re.compile("group=opt"))
    is_drawn(graph(console, "loss"))
    console.get_by_label("log scale").check()
    console.get_by_label("Smoothing").fill("0.6")
    expect(console).to_have_url(re.compile(r"log=1.*smooth=0\.6"))
    console.get_by_label("Over", exact=True).select_option("time")
    is_drawn(graph(console, "loss"))


@ON_BOTH_SCREENS
def test_nobody_is_kept_from_graphs_and_comparisons(
    console: Page, job: str, sweep: list[str], screen: Screen, no_complaints: Complaints
) -> None:
    no_complaints.but("Applying inline style")  # seen only while axe runs
    for name, address in (
        ("graphs", address_of(job)),
        ("compare", f"/console/compare?jobs={','.join(sweep)}&group=opt"),
        ("compare-nothing", "/console/compare"),
    ):
        console.goto(address)
        if name != "compare-nothing":
            is_drawn(graph(console, "CPU" if name == "graphs" else "loss"))
        else:
            expect(console.get_by_text("Which jobs?")).to_be_visible()
        assert axe_in_both_themes(console, name) == []
