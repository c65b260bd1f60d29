"""The form for a new job, filled in the way a person does it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, go_to, screenshot
from tests.live import LiveServer, pool, python
from trainshed.cli.ignored import Patterns

pytestmark = pytest.mark.slow

PROGRAM = (
    "import os, sys\n"
    "print(sys.argv[1:], os.environ['HF_TOKEN'][:4], open('pkg/note.txt').read(), os.listdir('.'))\n"
)
SECRET = "hush-not-to-be-kept"
PASTED = """
# as gcloud's --config takes it
worker_pool_specs:
- machine_spec: {machine_type: n1-standard-1}
  container_spec:
    image_uri: trainshed/python:3
    command: [python, -c, "print('a b')"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "32GiB", "--engine", "none") as server:
        yield server


@pytest.fixture(autouse=True)
def refusals(no_complaints: Complaints) -> None:
    """Browsers report each refusal; a form that is not complete is refused, and there is no engine here."""
    no_complaints.but("status of 400", "status of 503")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "project"
    for name, text in {
        "train.py": PROGRAM,
        "pkg/note.txt": "noted",
        "data/large.bin": "not wanted",
        "run.log": "not wanted",
        ".gitignore": "data/\n*.log\n",
        "venv/pyvenv.cfg": "home = /usr",
        "venv/lib/x.py": "not wanted",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def submitted(console: Page) -> str:
    """Submits the form. The name of the job whose page is shown then."""
    console.get_by_role("button", name="Submit the job").dblclick()
    console.wait_for_url("**/console/jobs/*/*/*", wait_until="commit")
    project, location, job = console.url.split("/")[-3:]
    return f"projects/{project}/locations/{location}/customJobs/{job}"


@ON_BOTH_SCREENS
def test_a_job_is_made_from_a_folder_submitted_once_and_cloned_with_its_secret(
    console: Page, server: LiveServer, folder: Path, screen: Screen
):
    project = f"p{screen.width}"
    console.goto("/console/new")
    console.get_by_role("button", name="Submit the job").click()
    expect(console.get_by_label("Name", exact=True)).to_be_focused()
    expect(console.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    assert axe(console) == []
    screenshot(console, f"new-violations-{screen}")
    console.get_by_label("Project").fill(project)
    console.get_by_label("Name", exact=True).fill("<b>first</b>")
    console.locator("input[aria-label='Folder of code']").set_input_files(folder)
    expect(console.get_by_text("project: 3 files")).to_contain_text("4 ignored")
    expect(console.get_by_label("Command")).to_have_value("python train.py")
    console.get_by_label("Arguments").fill("--epochs 3 'two words'")
    console.get_by_label("Labels").fill("team=vision, run=3")
    console.get_by_role("button", name="Add a variable").click()
    console.get_by_label("Name of variable 1").fill("HF_TOKEN")
    console.get_by_label("Value of variable 1").fill(SECRET)
    console.get_by_label("Machine", exact=True).fill("n1-standard-x")
    machine = "jobSpec.workerPoolSpecs[0].machineSpec.machineType"
    expect(console.locator(f"[id='{machine}:problem']")).to_contain_text("n1-standard-x")
    console.get_by_label("Machine", exact=True).fill("n1-standard-2")
    console.get_by_label("Stop after").fill("2 h")
    expect(console.get_by_text("Starts now.")).to_be_visible()
    text = console.get_by_label("The job as YAML")
    expect(text).to_contain_text('timeout: "7200s"')
    console.get_by_role("button", name="gcloud").click()
    expect(console.get_by_label("The gcloud command")).to_contain_text("--labels=team=vision,run=3")
    kept = console.evaluate("JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")
    assert "HF_TOKEN" in kept
    assert SECRET not in kept + console.inner_text("body")
    assert axe(console) == []
    screenshot(console, f"new-{screen}")
    assert console.evaluate("document.documentElement.scrollWidth <= innerWidth")
    first = submitted(console)
    assert server.wait(first)["labels"] == {"team": "vision", "run": "3"}
    line = "['--epochs', '3', 'two words'] hush noted"
    assert server.lines(first)[0]["text"].startswith(line)
    console.goto(f"/console/new?from={first}")
    expect(console.get_by_label("Command")).to_have_value("python train.py")
    console.get_by_label("Arguments").fill("again")
    second = submitted(console)
    server.wait(second)
    assert server.lines(second)[0]["text"].startswith("['again'] hush noted")
    jobs = server.request("GET", f"/v1/projects/{project}/locations/us-central1/customJobs").json
    assert len(jobs["customJobs"]) == 2  # though each was submitted with a double click


def test_a_pasted_file_fills_the_form_and_the_draft_outlives_a_reload_and_why_it_waits_is_said(
    console: Page, server: LiveServer
):
    busy = server.submit(pools=[pool(python("import time; time.sleep(600)"), machine="n1-standard-4")])
    server.wait_for(busy, ["JOB_STATE_RUNNING"])
    console.goto("/console/new")
    console.get_by_role("button", name="Paste a job file").click()
    console.get_by_label("A job file").fill("a: 1\na: 2\n")
    console.get_by_role("button", name="Fill the form").click()
    expect(console.get_by_text("the text:2: a is here a second time")).to_be_visible()
    console.get_by_label("A job file").fill(PASTED)
    console.get_by_role("button", name="Fill the form").click()
    expect(console.get_by_label("Command")).to_have_value("""python -c 'print('\\''a b'\\'')'""")
    console.get_by_label("Name", exact=True).fill("waits")
    console.get_by_label("Machine", exact=True).fill("n1-standard-4")
    expect(console.get_by_text("Would wait")).to_be_visible()
    console.get_by_role("button", name="Add workers").click()
    console.reload()
    expect(console.get_by_role("group", name="Workers", exact=True)).to_be_visible()
    expect(console.get_by_label("Name", exact=True)).to_have_value("waits")
    console.get_by_role("button", name="Remove workers").click()
    expect(console.get_by_role("group", name="Workers", exact=True)).to_have_count(0)
    server.cancel(busy)


def test_the_page_ignores_what_the_command_line_ignores(console: Page):
    cases = {
        "*.log\n!keep.log": ["a.log", "x/b.log", "keep.log", "x/keep.log", "a.logs"],
        "/build\ndocs/**/x\n": ["build", "a/build", "build/b", "docs/x", "docs/a/b/x", "docs/xy"],
        "data/\n# no\n \n": ["data", "data/a", "x/data/b", "datas/c"],
        "a?c\n[!x]yz\nq[0-9]\n\\#d": ["abc", "a/c", "ayz", "xyz", "q7", "qq", "#d"],
        "foo/**\n**/bar\nsp\\ ace  \n.": ["foo/a", "foo", "x/y/bar", "sp ace", "spxace", "a.b"],
        "a.b+(c)|{d}^$": ["a.b+(c)|{d}^$", "axb+(c)|{d}^$"],
    }
    go_to(console, "/console/jobs")
    files = console.evaluate("document.querySelector('script[src$=\"main.js\"]').src").rpartition("/")[0]
    ask = """async ([files, text, paths]) => {
        const { isIgnored, readPatterns } = await import(files + '/lib/ignored.js');
        return paths.map((path) => isIgnored(path, [readPatterns(text)]));
    }"""
    for text, paths in cases.items():
        patterns = Patterns(text.splitlines())
        expected = [patterns.holds(path) for path in paths]
        assert (text, console.evaluate(ask, [files, text, paths])) == (text, expected)
