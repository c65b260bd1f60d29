"""Studies in a real Chromium: the list, the page of a study, its graphs and what can be done to it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.page import (
    ON_BOTH_SCREENS,
    SCREENS,
    Complaints,
    Screen,
    axe,
    open_context,
    screenshot,
    sign_in,
)
from tests.homes.many_jobs import keep_ended_jobs
from tests.homes.many_trials import ended_study, keep_studies
from tests.live import PARENT, LiveServer, pool, python, until
from tests.studies.asked_studies import asked_study
from trainshed.core.tuning.pareto import optimal_indexes
from trainshed.core.tuning.trial_outline import outline

HOSTILE = "<img src=x onerror=alert(1)>"
TRAIN = """
import sys, time
from trainshed import report
given = dict(word[2:].split("=") for word in sys.argv[1:])
if given["net"] == "broken":
    raise ValueError("no such net")
for step in range(1, {steps} + 1):
    report.step(step, loss=float(given["lr"]) + 1 / step)
    time.sleep({pause})
"""
SPACE = [
    {
        "parameterId": "lr",
        "doubleValueSpec": {"minValue": 0.001, "maxValue": 0.5},
        "scaleType": "UNIT_LOG_SCALE",
    },
    {"parameterId": "net", "categoricalValueSpec": {"values": ["small", "large", "broken"]}},
]
ENDED = {
    name: ended_study(name, number, at=1000 * at, metrics=metrics, failing=failing, measurements=8)
    for at, (name, number, metrics, failing) in enumerate(
        [
            ("one", 1, ["loss"], 0),
            ("thirty", 30, ["loss"], 10),
            ("many", 300, ["loss"], 10),
            ("two objectives", 120, ["loss", "seconds"], 10),
            ("all failed", 6, ["loss"], 1),
            ("none", 0, ["loss"], 0),
        ]
    )
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    home = tmp_path_factory.mktemp("s") / "h"
    keep_studies(home, *ENDED.values())
    with LiveServer("--cpus", "64", "--memory", "512GiB", home=home) as server:
        yield server


def start(
    server: LiveServer, name: str = "search", steps: int = 3, pause: float = 0.1, **more: object
) -> str:
    """A study with real trials; its full name."""
    body: dict[str, object] = {
        "displayName": name,
        "studySpec": {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": SPACE},
        "maxTrialCount": 3,
        "parallelTrialCount": 3,
        "maxFailedTrialCount": 50,
        "initialTrials": [
            {"lr": 0.1, "net": "small"},
            {"lr": 0.01, "net": "large"},
            {"lr": 0.2, "net": "small"},
        ],
        "trialJobSpec": {"workerPoolSpecs": [pool(python(TRAIN.format(steps=steps, pause=pause)))]},
        **more,
    }
    return str(server.post(f"{PARENT}/hyperparameterTuningJobs", body)["name"])


def address_of(name: str, tab: str = "") -> str:
    _, project, _, location, _, study = name.split("/")
    return f"/console/studies/{project}/{location}/{study}/{tab}".rstrip("/")


def ended(name: str, tab: str = "") -> str:
    return address_of(ENDED[name][0].name, tab)


def graph(page: Page, title: str) -> Locator:
    return page.get_by_role("figure", name=re.compile(re.escape(f"Graph of {title}")))


def is_drawn(canvas: Locator) -> None:
    """Some pixels of it have colour."""
    canvas.scroll_into_view_if_needed()
    count = """canvas => { const {width, height} = canvas;
        const data = canvas.getContext("2d").getImageData(0, 0, width, height).data; let count = 0;
        for (let at = 0; at < data.length; at += 4)
            count += data[at + 3] > 0 && Math.abs(data[at] - data[at + 2]) > 40;
        return count; }"""
    until(lambda: canvas.evaluate(count) > 20)


@ON_BOTH_SCREENS
def test_a_person_finds_a_study_and_follows_it_to_its_end(
    console: Page, server: LiveServer, screen: Screen, no_complaints: Complaints
):
    console.goto("/console/jobs")
    expect(console.get_by_role("navigation", name="Pages")).to_be_visible()
    console.keyboard.press("g")
    console.keyboard.press("s")
    expect(console).to_have_url(re.compile("/console/studies$"))
    expect(console.get_by_role("link", name="thirty")).to_be_visible()
    study = start(server, HOSTILE)
    row = console.get_by_role("row", name=re.compile(re.escape(HOSTILE)))
    expect(row.first).to_be_visible()  # by itself, and its name is text
    expect(row.first).to_contain_text("3 / 3")
    row.first.get_by_role("link").first.click()
    expect(console.get_by_role("heading", level=1, name=HOSTILE)).to_be_visible()
    expect(console.locator("header.study-head")).to_contain_text("succeeded")
    best = console.get_by_role("region", name="The best trial")
    expect(best).to_contain_text(re.compile(r"Lowest loss.*0\.3433.*large", re.DOTALL))
    is_drawn(graph(console, "loss by trial").locator("canvas"))
    graph(console, "loss by trial").locator(".u-over").hover()
    expect(graph(console, "loss by trial").locator(".plot-words")).to_have_text(
        re.compile(r"trial \d · .*best so far")
    )
    no_complaints.but("status of 404")
    server.request("DELETE", f"/v1/{study}")
    expect(console.get_by_text("This study was deleted.")).to_be_visible()


def test_the_list_is_filtered_and_walked_with_keys(console: Page, no_complaints: Complaints):
    console.goto("/console/studies")
    expect(console.get_by_role("link", name="thirty")).to_be_visible()
    console.keyboard.press("/")
    console.keyboard.type("objectives")
    expect(console.get_by_role("link", name="thirty")).to_have_count(0)
    expect(console).to_have_url(re.compile("filter=objectives"))
    console.keyboard.press("Escape")
    console.keyboard.press("j")
    console.keyboard.press("Enter")
    expect(console.get_by_role("heading", level=1, name="two objectives")).to_be_visible()
    no_complaints.but("status of 400")
    console.goto("/console/studies?filter=nothing%3D%3D")
    expect(console.locator("#filter-studies-problem")).not_to_be_empty()


def test_studies_stand_among_the_jobs_and_trials_only_where_asked_for(console: Page, server: LiveServer):
    study = start(server, "among jobs")
    until(lambda: server.get(f"/v1/{study}", view="trainshed")["state"] == "JOB_STATE_SUCCEEDED")
    console.goto("/console/jobs")
    row = console.get_by_role("row", name=re.compile("among jobs"))
    expect(row).to_have_count(1)
    expect(row).to_contain_text("study")
    console.get_by_role("button", name="Trials", exact=True).click()
    expect(row).to_have_count(4)
    console.goto("/console/jobs?filter=kind%3Dtrial among")
    expect(row).to_have_count(3)
    console.goto("/console/jobs?filter=kind%3Dstudy among")
    expect(row).to_have_count(1)
    console.goto("/console/jobs?filter=kind%3Dtrial among")
    row.first.get_by_role("link").first.click()
    console.get_by_role("link", name="a study").click()
    expect(console.get_by_role("heading", level=1, name="among jobs")).to_be_visible()


def test_a_study_is_on_the_page_of_the_jobs_of_its_time(
    browser: Browser, tmp_path: Path, no_complaints: Complaints
):
    home = tmp_path / "h"
    keep_ended_jobs(home, 120, age=timedelta(days=1, seconds=200))  # the last is 80 s younger than a day
    keep_studies(home, *(ended_study(f"study {at}", 1, at=at) for at in (0, 100, 160, 195)))
    with LiveServer("--cpus", "2", home=home) as server, open_context(browser, server) as context:
        page = context.new_page()
        no_complaints.watch(page)
        sign_in(page, server)
        page.goto("/console/jobs")
        studies = page.locator("tbody a.job", has_text="study")
        expect(studies).to_have_text(["study 0", "study 100"])
        page.keyboard.press("n")
        expect(studies).to_have_text(["study 160"])
        page.keyboard.press("n")
        expect(studies).to_have_text(["study 195"])
        page.keyboard.press("p")
        expect(studies).to_have_text(["study 160"])
        page.keyboard.press("p")
        expect(studies).to_have_text(["study 0", "study 100"])
        page.get_by_role("button", name="Name").click()  # by name there is no time to stand at
        expect(studies).to_have_count(0)


def test_trials_are_sorted_filtered_and_lead_to_their_jobs(console: Page, server: LiveServer):
    study = start(
        server,
        "with a failure",
        initialTrials=[
            {"lr": 0.1, "net": "small"},
            {"lr": 0.01, "net": "large"},
            {"lr": 0.2, "net": "broken"},
        ],
    )
    console.goto(address_of(study, "trials"))
    failed = console.get_by_role("row", name=re.compile("infeasible"))
    expect(failed).to_be_visible()
    expect(failed).to_contain_text("broken")
    console.get_by_role("button", name="loss").click()
    expect(console).to_have_url(re.compile("sort=value"))
    expect(console.locator("tbody tr").first).to_contain_text("large")
    console.get_by_label("State").select_option("SUCCEEDED")
    expect(console.locator("tbody tr")).to_have_count(2)
    console.get_by_role("link", name="Logs of trial 2").click()
    expect(console.get_by_role("heading", level=1, name="with a failure trial 2")).to_be_visible()


def test_a_study_is_limited_stopped_and_gone_on_with(
    console: Page, server: LiveServer, no_complaints: Complaints
):
    no_complaints.but("status of 400", "status of 404")  # a point outside of the space; it is deleted at last
    points = [{"lr": 0.1 / number, "net": "small"} for number in range(1, 5)]  # no trial fails by itself
    study = start(server, "long", steps=10_000, pause=0.2, initialTrials=points)
    console.goto(address_of(study, "trials"))
    console.get_by_role("button", name="Stop trial 3").click()
    console.get_by_role("button", name="Stop the trial").click()
    expect(console.locator("tbody tr").nth(2)).not_to_contain_text("active")
    console.get_by_role("button", name="Limits").click()
    console.get_by_label("Trials in all").fill("5")
    console.get_by_role("button", name="Set limits").click()
    expect(console.locator("tbody tr")).to_have_count(4)  # three at once
    console.get_by_role("button", name="More").click()
    console.get_by_role("menuitem", name="Add a trial").click()
    console.get_by_label("net").select_option("large")
    console.get_by_label(re.compile("^lr")).fill("7")
    console.get_by_role("button", name="Add the trial").click()
    expect(console.get_by_role("dialog").get_by_role("alert")).to_contain_text("0.5")  # what is allowed
    console.get_by_label(re.compile("^lr")).fill("0.125")
    console.get_by_role("button", name="Add the trial").click()
    expect(console.get_by_role("row", name=re.compile("0.125"))).to_be_visible()
    console.get_by_role("button", name="Stop", exact=True).click()
    console.get_by_role("button", name="Stop the study").click()
    expect(console.locator("header.study-head")).to_contain_text("succeeded")
    console.get_by_role("button", name="Go on").click()
    console.get_by_role("dialog").get_by_role("button", name="Go on").click()
    expect(console.locator("header.study-head")).to_contain_text("running")
    console.get_by_role("button", name="Cancel", exact=True).click()
    console.get_by_role("button", name="Cancel the study").click()
    expect(console.locator("header.study-head")).to_contain_text("cancelled")
    console.get_by_role("button", name="More").click()
    console.get_by_role("menuitem", name="Delete").click()
    console.get_by_role("button", name="Delete the study").click()
    expect(console).to_have_url(re.compile("/console/studies$"))
    expect(console.get_by_role("link", name="long", exact=True)).to_have_count(0)


def test_the_best_point_becomes_a_command_and_a_new_job(console: Page, no_complaints: Complaints):
    no_complaints.but("status of 503")  # the form asks for images, and there is no engine
    console.goto(ended("thirty"))
    console.get_by_role("button", name="Copy command").click()
    expect(console.get_by_role("button", name="Copied")).to_be_visible()
    copied = console.evaluate("() => navigator.clipboard.readText()")
    assert re.fullmatch(r"python train\.py --lr=[\d.]+ --batch=\d+ --layers=\d --optimizer=\w+.*", copied)
    console.get_by_role("button", name="Clone best as a job").click()
    expect(console.get_by_role("heading", level=1, name="New job")).to_be_visible()
    expect(console.locator("form.new-job")).to_contain_text("--optimizer=")


def test_curves_are_chosen_and_sent_on_as_links(console: Page):
    console.goto(ended("many", "curves"))
    is_drawn(graph(console, "loss").locator("canvas"))
    chips = console.get_by_role("list", name="Trials").get_by_role("button")
    expect(chips).to_have_count(50)
    chips.nth(3).click()
    expect(console).to_have_url(re.compile(r"trial=\d+"))
    number = chips.nth(3).inner_text().strip()
    expect(console.get_by_role("region", name="The chosen trial")).to_contain_text(f"Trial {number}")
    console.keyboard.press("k")
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    worst = max(
        (trial.final.values["loss"], trial.number) for trial in ENDED["many"][1] if trial.final is not None
    )[1]
    console.goto(f"{ended('many', 'curves')}?trial={worst}")  # not among the best
    expect(chips).to_have_count(51)
    expect(console.get_by_role("region", name="The chosen trial")).to_contain_text("lr=")


def test_a_range_on_an_axis_narrows_the_trials(console: Page):
    console.goto(ended("many", "parallel"))
    is_drawn(console.locator(".parallel-lines canvas"))
    expect(console.get_by_text("270 of 270 trials")).to_be_visible()
    grip = console.locator(".grip[data-axis=lr]")
    box = grip.bounding_box()
    assert box is not None
    console.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.4)
    console.mouse.down()
    console.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.6, steps=4)
    console.mouse.up()
    expect(console).to_have_url(re.compile(r"r\.lr="))
    expect(console.get_by_text("270 of 270 trials")).to_have_count(0)
    console.get_by_label("Only this optimizer").select_option("sgd")
    expect(console.get_by_role("region", name="The best trials in these ranges")).not_to_contain_text("adam")
    link = console.url
    found = console.get_by_text(re.compile(r"\d+ of 270 trials")).inner_text()
    console.goto(link)
    expect(console.get_by_text(found)).to_be_visible()
    console.get_by_role("button", name="All ranges").click()
    expect(console.get_by_text("270 of 270 trials")).to_be_visible()


def test_several_objectives_are_shown_against_each_other(console: Page):
    console.goto(ended("two objectives"))
    is_drawn(graph(console, "seconds").locator("canvas"))
    front = console.get_by_role("region", name="Trials that no other beats")
    study, trials = ENDED["two objectives"]
    best = optimal_indexes([outline(study, trial).values for trial in trials], study.spec.objectives)
    expect(front.get_by_role("row")).to_have_count(1 + len(best))
    graph(console, "seconds").locator(".u-over").hover()
    expect(graph(console, "seconds").locator(".plot-words")).to_have_text(
        re.compile(r"trial \d+ · loss .*seconds")
    )


@ON_BOTH_SCREENS
def test_a_study_that_clients_run_is_followed_live_and_deleted(
    console: Page, server: LiveServer, screen: Screen, no_complaints: Complaints
):
    study = asked_study(server, f"asked on {screen}")
    console.goto(address_of(study.name, "trials"))
    expect(console.get_by_role("heading", level=1, name=f"asked on {screen}")).to_be_visible()
    expect(console.locator("header.study-head")).to_contain_text("Vizier study")
    expect(console.get_by_text("There are no trials yet")).to_be_visible()
    running, good, hopeless = study.ask(3)
    rows = console.locator("tbody tr")
    expect(rows).to_have_count(3)  # by itself, as all that follows
    study.measure(running, 1, 0.5)
    expect(rows.nth(0)).to_contain_text("0.5")
    study.complete(good, 0.125)
    expect(rows.nth(1)).to_contain_text("succeeded")
    study.give_up(hopeless, "it burnt")
    expect(rows.nth(2)).to_contain_text("it burnt")
    expect(rows.nth(0)).to_contain_text("active")

    screenshot(console, f"study-asked-trials-{screen}")
    for tab in ("", "curves", "parallel", "spec"):
        console.goto(address_of(study.name, tab))
        expect(console.get_by_role("heading", level=1)).to_be_visible()
        expect(console.locator("main .loading")).to_have_count(0)
        assert axe(console) == [], tab
    console.goto(address_of(study.name))
    best = console.get_by_role("region", name="The best trial")
    expect(best).to_contain_text("0.125")
    study.complete(running, 0.0625)
    expect(best).to_contain_text("0.0625")
    expect(console.get_by_role("button", name="Cancel")).to_have_count(0)  # there is no job to cancel
    console.get_by_role("button", name="More").click()
    console.get_by_role("menuitem", name="Delete").click()
    no_complaints.but("status of 404")  # what is deleted is looked at once more
    console.get_by_role("button", name="Delete the study").click()
    expect(console).to_have_url(re.compile("/console/studies$"))
    assert server.request("GET", study.path).status == 404


# Each width and each theme once: every screen takes half a minute.
@pytest.mark.parametrize("screen", (SCREENS[0], SCREENS[3]), ids=str)
def test_every_part_of_every_study_fits_and_axe_finds_nothing(console: Page, screen: Screen):
    wrong: list[str] = []
    for name in (name for name in ENDED if name != "thirty"):  # "many" has all that it has
        console.goto(ended(name))
        for tab in ("", "trials", "curves", "parallel", "spec"):
            link = console.get_by_role("navigation", name="Parts of the study").locator(
                f"a[href='{ended(name, tab)}']"
            )
            link.click()
            expect(link).to_have_attribute("aria-current", "page")
            expect(console.get_by_role("heading", level=1, name=name)).to_be_visible()
            expect(console.locator("main .loading")).to_have_count(0)
            screenshot(console, f"study-{name}-{tab or 'overview'}-{screen}".replace(" ", "-"))
            wide = console.evaluate("document.documentElement.scrollWidth > innerWidth")
            wrong += [f"{name} {tab} is too wide"] if wide else []
            wrong += [f"{name} {tab}: {sentence}" for sentence in axe(console)]
    assert wrong == []


def test_fifty_thousand_trials_are_turned_page_by_page(
    browser: Browser, tmp_path: Path, no_complaints: Complaints
):
    study = ended_study("huge", 50_000, measurements=1)
    keep_studies(tmp_path / "h", study)
    with LiveServer("--cpus", "2", home=tmp_path / "h") as server, open_context(browser, server) as context:
        page = context.new_page()
        no_complaints.watch(page)
        sign_in(page, server)
        page.goto(address_of(study[0].name, "trials"))
        expect(page.get_by_text("50,000 trials")).to_be_visible()
        page.get_by_role("button", name="Trial").click()
        expect(page.locator("tbody tr").first).to_contain_text("50000")
        page.keyboard.press("n")
        expect(page.get_by_text("Page 2 of 1,000")).to_be_visible()
        expect(page.locator("tbody tr").first).to_contain_text("49950")
        page.keyboard.press("p")
        expect(page.locator("tbody tr").first).to_contain_text("50000")
        page.goto(address_of(study[0].name))
        is_drawn(graph(page, "loss by trial").locator("canvas"))
        page.goto(address_of(study[0].name, "parallel"))
        expect(page.get_by_text("500 of 500 trials, the best")).to_be_visible()
