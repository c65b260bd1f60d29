"""A real Chromium for tests of pages, driven by Playwright, and a page that is signed in to a server.

    def test_a_person_does_something(console: Page): ...       # signed in, 1280 px wide, light
    @ON_BOTH_SCREENS
    def test_it_fits(console: Page): ...                       # once at 1280 px, once at 390 px

A module that asks for `console` has a fixture `server`. `console.goto("/console/machines")` needs no host.
Whatever a page writes to the browser's console as a warning or an error fails its test, and so do refusals of
the policy and errors that no script caught. Nothing is fetched from anywhere but the server under test.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.live import PATIENCE, LiveServer

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".console-tools" / "axe-core" / "axe.min.js"
VENDOR = ROOT / "src" / "trainshed" / "console" / "vendor"
PICTURES = os.environ.get("SCREENSHOTS")  # the folder for pictures of pages; without it none are made
OF_COLOURS = ("color-contrast", "link-in-text-block")  # the rules of axe that ask for them
FLAGS = ["--disable-quic", "--disable-gpu"]

expect.set_options(timeout=PATIENCE * 1000)


@dataclass(frozen=True)
class Screen:
    width: int
    height: int
    colours: Literal["light", "dark"] = "light"

    def __str__(self) -> str:
        return f"{self.width}-{self.colours}"


WIDE = Screen(1280, 800)
NARROW = Screen(390, 844)
SCREENS = (WIDE, NARROW, Screen(1280, 800, "dark"), Screen(390, 844, "dark"))
ON_BOTH_SCREENS = pytest.mark.parametrize("screen", [WIDE, NARROW], ids=str)


@dataclass
class Complaints:
    """What pages complained of. A test names what it brings about: `no_complaints.but("status of 404")`."""

    heard: list[str] = field(default_factory=list[str])
    # Chromium drops requests when the machine gets an interface, as another test's container does.
    expected: list[str] = field(default_factory=lambda: ["ERR_NETWORK_CHANGED"])

    def but(self, *patterns: str) -> None:
        self.expected += patterns

    def watch(self, page: Page) -> None:
        page.on("console", lambda m: self.heard.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.heard.append(f"not caught: {error.stack or error.message}"))

    def unexpected(self) -> list[str]:
        return [text for text in self.heard if not any(re.search(p, text) for p in self.expected)]


def chromium() -> str | None:
    """First the one without windows, which draws the same pages and takes a sixth less of the CPU."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One while files of this folder follow each other: async tests of others need its loop stopped."""
    program = chromium()
    if program is None:
        pytest.skip("chromium is not here; get it on Debian or Ubuntu, as root, with: scripts/containers-env")
    if not (VENDOR / "preact.js").exists():
        pytest.skip("the console's libraries are not here; get them with: scripts/console-assets")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        yield browser
        browser.close()


@pytest.fixture
def screen() -> Screen:
    """Tests take another one by the mark ON_BOTH_SCREENS."""
    return WIDE


@pytest.fixture
def no_complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    yield complaints
    unexpected = complaints.unexpected()
    assert unexpected == [], unexpected


@pytest.fixture
def visitor(
    browser: Browser, server: LiveServer, screen: Screen, no_complaints: Complaints
) -> Iterator[Page]:
    """A page of somebody who is not signed in, at no address yet."""
    with open_context(browser, server, screen) as context:
        page = context.new_page()
        no_complaints.watch(page)
        yield page


@pytest.fixture
def console(visitor: Page, server: LiveServer) -> Page:
    """A page of somebody who is signed in, at no address yet."""
    sign_in(visitor, server)
    return visitor


@contextmanager
def open_context(browser: Browser, server: LiveServer, screen: Screen = WIDE) -> Iterator[BrowserContext]:
    """A profile of its own, with nobody signed in."""
    context = browser.new_context(
        base_url=server.url,
        viewport={"width": screen.width, "height": screen.height},
        color_scheme=screen.colours,
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(PATIENCE * 1000)
    try:
        yield context
    finally:
        context.close()


def sign_in(page: Page, server: LiveServer) -> None:
    """With a ticket, as the console does. Nothing is loaded: a test begins with the page it is about."""
    ticket = server.request("POST", "/v1/console:ticket", {}).json["ticket"]
    answer = page.context.request.post("/v1/console:signIn", data={"ticket": ticket})
    assert answer.ok, answer.text()


def go_to(page: Page, address: str) -> None:
    """Return once the frame of the page stands. Before, it may load itself again: a module may not come."""
    page.goto(address)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def axe(page: Page, *rules: str) -> list[str]:
    """What axe-core finds wrong with a page as it is now, by all its rules or these: a sentence for each."""
    if not AXE.exists():
        pytest.skip("axe-core is not here; get it with: scripts/console-assets --tools")
    # Evaluated, not added as an element: the policy of the page refuses scripts of others.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + ";undefined")
    # Nor does it load style sheets once more: it would write them into elements, which is refused too.
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": rules}
    violations = page.evaluate("options => axe.run(document, options).then(told => told.violations)", options)
    return [
        f"{wrong['id']} ({wrong['impact']}): {node['failureSummary']} at {node['target']}: {node['html']}"
        for wrong in violations
        for node in wrong["nodes"]
    ]


def axe_in_both_themes(page: Page, name: str) -> list[str]:
    """The same for a page in light colours and then in dark ones, with a picture of each, named so.

    The page is not loaded again: a theme is a matter of its style sheet, and only colours depend on it.
    """
    assert page.viewport_size is not None
    width = page.viewport_size["width"]
    screenshot(page, f"{name}-{width}-light")
    wrong = axe(page)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    screenshot(page, f"{name}-{width}-dark")
    wrong += [f"in dark colours: {sentence}" for sentence in axe(page, *OF_COLOURS)]
    page.emulate_media(color_scheme="light")
    return wrong


def screenshot(page: Page, name: str) -> None:
    """A picture for people to look at, where SCREENSHOTS=folder asks for pictures."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
