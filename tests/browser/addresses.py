"""The addresses of the console, for tests that look at every page: a new page is a row here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from playwright.sync_api import Page, expect

from tests.browser.page import ROOT

CONSOLE = ROOT / "src" / "trainshed" / "console"


@dataclass(frozen=True)
class Address:
    """`module` draws it. `{job}` in the path is PROJECT/LOCATION/ID of a job that the test has made."""

    name: str
    module: str
    path: str

    def __str__(self) -> str:
        return self.name


ADDRESSES = (
    Address("jobs", "jobs", "/console/jobs"),
    Address("no-jobs", "jobs", "/console/jobs?filter=nothing-has-this-name"),
    Address("job", "job-overview", "/console/jobs/{job}"),
    Address("logs", "job-logs", "/console/jobs/{job}/logs"),
    Address("graphs", "job-graphs", "/console/jobs/{job}/graphs"),
    Address("shell", "job-shell", "/console/jobs/{job}/shell"),
    Address("stacks", "job-stacks", "/console/jobs/{job}/stacks"),
    Address("code", "job-code", "/console/jobs/{job}/code"),
    Address("spec", "job-spec", "/console/jobs/{job}/spec"),
    Address("no-job", "job", "/console/jobs/p1/us-central1/1"),
    Address("studies", "studies", "/console/studies"),
    Address("no-study", "study", "/console/studies/p1/us-central1/1"),  # test_studies_page.py has the tabs
    Address("compare", "compare", "/console/compare"),
    Address("machines", "machines", "/console/machines"),
    Address("costs", "costs", "/console/costs"),
    Address("buckets", "buckets", "/console/buckets"),
    Address("images", "images", "/console/images"),
    Address("runtimes", "runtimes", "/console/runtimes"),
    Address("accounts", "accounts", "/console/accounts"),
    Address("new", "new", "/console/new"),
    Address("login", "login", "/console/login"),
    Address("no-page", "jobs", "/console/nothing"),
)
JOB = next(address for address in ADDRESSES if address.name == "job")
# What the server answers to some: no such job, stacks of a job that is over, images without an engine.
REFUSALS = ("status of 404", "status of 400", "status of 503")


def modules() -> set[str]:
    """The modules that addresses lead to, as main.js and job-tabs.js name them, as far as they are there."""
    [pages] = re.findall(r"PAGES = new Set\(\[([^]]+)\]", (CONSOLE / "main.js").read_text())
    [tabs] = re.findall(r"TABS = \[(.+?)\];", (CONSOLE / "lib" / "job-tabs.js").read_text(), re.DOTALL)
    named = {*re.findall(r'"(\w+)"', pages), *(f"job-{tab}" for tab in re.findall(r'name: "(\w+)"', tabs))}
    return {name for name in named if (CONSOLE / "pages" / f"{name}.js").exists()}


def pages() -> list[Address]:
    """The addresses whose module is there, and none that a row is missing for."""
    there = modules()
    assert there <= {address.module for address in ADDRESSES}, "each page needs a row in ADDRESSES"
    return [address for address in ADDRESSES if address.module in there]


def visit(page: Page, address: Address, job: str) -> None:
    """Go there, and wait until the page shows what it has. `job` is its name in the API."""
    page.goto(_path(address, job))
    _wait(page)


def visit_all(page: Page, job: str) -> Iterator[Address]:
    """Each page in turn: the first is loaded, and the others are gone to from there, as by a link.

    So the scripts of the console, and those of the test, are read once for all of them.
    """
    first, *others = pages()
    visit(page, first, job)
    yield first
    for address in others:
        page.evaluate(_FOLLOW, _path(address, job))
        _wait(page)
        yield address


# What was there before is still shown until the next drawing.
_FOLLOW = """path => {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())));
}"""


def _path(address: Address, job: str) -> str:
    _, project, _, location, _, number = job.split("/")
    return address.path.format(job=f"{project}/{location}/{number}")


def _wait(page: Page) -> None:
    expect(page.locator("main").locator("h1, [role=alert]").first).to_be_visible()
    expect(page.locator("main .loading, main [aria-busy=true]")).to_have_count(0)
