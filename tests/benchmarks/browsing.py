"""A Chromium for measurements: a page that is signed in, and what an empty page of the same server takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from playwright.sync_api import Page, sync_playwright

from tests.browser.page import FLAGS, WIDE, chromium, open_context, sign_in
from tests.live import LiveServer

ROUNDS = 7
UNDISTURBED = 2000  # milliseconds


@contextmanager
def signed_in_page(server: LiveServer) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, "--no-sandbox"], chromium_sandbox=False
        )
        with open_context(browser, server, WIDE) as context:
            page = context.new_page()
            sign_in(page, server)
            yield page
        browser.close()


def empty_page(page: Page) -> str:
    """The floor of all that is opened by its address: one small answer of the same server, parsed."""
    times: list[float] = []
    for _ in range(ROUNDS):
        page.goto("/healthz")
        times.append(float(page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive")))
    return f"empty page {median(times):.1f} ms"


def shown(page: Page, address: str) -> float:
    """Seconds from entering the address, in a console that is open, to the moment that a script notes."""
    page.goto("/console/jobs")
    page.locator("a.job").first.wait_for()
    page.goto(address)
    # What is asked of a new page brings the driver's own scripts into it, which take time of the page.
    page.wait_for_timeout(UNDISTURBED)
    page.wait_for_function("() => window.noted !== undefined")
    return float(page.evaluate("window.noted")) / 1e3


def noting(condition: str) -> str:
    """A script for new pages: notes when the condition first holds, in milliseconds since the address."""
    return f"""
new MutationObserver((_, observer) => {{
  if (!({condition})) return;
  observer.disconnect();
  window.noted = performance.now();
}}).observe(document, {{childList: true, subtree: true, characterData: true}});
"""
