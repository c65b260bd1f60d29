"""How soon a line that a program prints is on the screen of somebody who follows its log."""

import re
import sys
from statistics import median

from tests.benchmarks.browsing import signed_in_page
from tests.benchmarks.row import Row, ms
from tests.live import LiveServer

SEEN = 40
# Not a whole number of anybody's ticks, so that lines come at any moment between them.
SLOWLY = """
import time
while True:
    time.sleep(0.31)
    print(f"printed at {time.time():.6f}", flush=True)
"""
LATE = """
window.late = [];
new MutationObserver((records) => {
  const now = (performance.timeOrigin + performance.now()) / 1000;
  for (const {addedNodes} of records) for (const node of addedNodes) {
    const printed = /printed at ([0-9.]+)/.exec(node.textContent ?? "");
    if (printed && node.classList?.contains("log-row")) window.late.push(now - Number(printed[1]));
  }
}).observe(document.querySelector(".log-list"), {childList: true, subtree: true});
"""


def on_the_screen() -> Row:
    """From just before print() to the line's row in the page, whose clock is this machine's."""
    with LiveServer() as server, signed_in_page(server) as page:
        name = server.submit([sys.executable, "-c", SLOWLY])
        _, project, _, location, _, job = name.split("/")
        page.goto(f"/console/jobs/{project}/{location}/{job}/logs")
        page.locator(".log-row").filter(has_text=re.compile("printed at")).first.wait_for()
        page.evaluate(LATE)
        page.wait_for_function(f"() => window.late.length >= {SEEN}")
        late = [float(seconds) for seconds in page.evaluate("window.late")]
        server.cancel(name)
    value = median(late) * 1e3
    what = "line printed -> on the screen"
    return Row(what=what, floor="0", ours=ms(late), value=value, goal=150, unit="ms")
