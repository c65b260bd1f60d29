"""What other sites, stolen tickets and hostile jobs can do to a person who is signed in: nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.addresses import ADDRESSES, JOB, REFUSALS, pages, visit
from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, open_context, screenshot
from tests.live import JOBS, LiveServer, pool, python
from tests.studies.asked_studies import asked_study

MARKUP = "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 2'>"
LINK = "javascript:window.attacked=3"
ESCAPES = (
    r"\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m"
    r"\x1b]8;;javascript:window.attacked=4\x07link\x1b]8;;\x07\x9b\x00"
)
TURNED = "\u202e"  # what follows reads from right to left
LONG = "x" * 1000
STORED = (
    "JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie + location.href + window.name"
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "64GiB", "--engine", "none") as server:
        yield server


class OtherSite(BaseHTTPRequestHandler):
    """An empty page of somebody else."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>Other</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


# Another port is another origin of the same site: its requests carry the cookie. Another name is another.
@pytest.fixture(scope="module", params=["127.0.0.1", "localhost"])
def other_site(request: pytest.FixtureRequest) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherSite) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://{request.param}:{site.server_port}/"
        site.shutdown()


@pytest.fixture(scope="module")
def hostile(server: LiveServer) -> str:
    """A job whose texts attack pages and terminals. Labels cannot: the server refuses such."""
    source = f"print({MARKUP!r}, flush=True); print('{ESCAPES}', flush=True); raise ValueError({MARKUP!r})"
    attack = pool(python(source), env={"ATTACK": MARKUP, "LINK": LINK}, args=[MARKUP, LINK])
    for text in (MARKUP, LINK):
        order = {
            "displayName": "labels",
            "jobSpec": {"workerPoolSpecs": [attack]},
            "labels": {"attack": text},
        }
        assert "labels.attack" in server.request("POST", JOBS, order).violations
    name = server.submit(pools=[attack], name=MARKUP)
    server.wait(name)
    return name


# Other sites


def test_other_sites_cannot_act_for_who_is_signed_in(console: Page, server: LiveServer, other_site: str):
    order = {"displayName": "attack", "jobSpec": {"workerPoolSpecs": [pool(python("pass"))]}}
    submit = """async ([address, body, mode]) => {
      const options = { method: "POST", mode, credentials: "include", body: JSON.stringify(body) };
      return fetch(address, options).then((answer) => answer.type + answer.status, () => "refused");
    }"""
    before = len(server.get(JOBS).get("customJobs", []))
    other = console.context.new_page()
    other.goto(other_site)
    for mode in ("no-cors", "cors"):
        with other.expect_event("requestfailed") as refusal:
            assert other.evaluate(submit, [server.url + JOBS, order, mode]) == "refused"
        assert refusal.value.failure in ("net::ERR_BLOCKED_BY_RESPONSE.NotSameOrigin", "net::ERR_FAILED")
    assert len(server.get(JOBS).get("customJobs", [])) == before
    console.goto("/console/jobs")
    assert console.evaluate(submit, [JOBS, order, "cors"]) == "basic200"  # nothing else was wrong with it


def test_a_form_of_another_site_is_refused(console: Page, server: LiveServer, other_site: str):
    other = console.context.new_page()
    other.goto(other_site)
    with other.expect_navigation() as navigation:
        other.evaluate(
            """(address) => {
              const form = Object.assign(document.createElement("form"), { method: "post", action: address });
              document.body.append(form);
              form.submit();
            }""",
            f"{server.url}/v1/console:signOut",
        )
    assert navigation.value is not None and navigation.value.status == 403
    console.goto("/console/jobs")
    expect(console.get_by_role("navigation", name="Pages")).to_be_visible()  # still signed in


def test_other_sites_read_nothing(console: Page, server: LiveServer, other_site: str):
    other = console.context.new_page()
    other.goto(other_site)
    read = (
        "address => fetch(address, {credentials: 'include'}).then(answer => answer.text(), () => 'refused')"
    )
    for path in (JOBS, "/v1/server", "/v1/projects/-/locations/-/customJobs:watch"):
        assert other.evaluate(read, server.url + path) == "refused", path


def test_other_sites_cannot_frame_the_console(console: Page, server: LiveServer, other_site: str):
    other = console.context.new_page()
    other.goto(other_site)
    other.evaluate(
        """(address) => new Promise((resolve) => {
          const frame = document.createElement("iframe");
          frame.onload = resolve;
          frame.src = address;
          document.body.append(frame);
        })""",
        f"{server.url}/console/jobs",
    )
    [frame] = other.main_frame.child_frames
    assert not frame.url.startswith(server.url)
    assert frame.locator("#app").count() == 0


def test_a_link_of_another_site_opens_the_console_signed_in(
    console: Page, server: LiveServer, other_site: str
):
    other = console.context.new_page()
    other.goto(other_site)
    other.evaluate("address => location.assign(address)", f"{server.url}/console/jobs")
    expect(other.get_by_role("navigation", name="Pages")).to_be_visible()


# Tickets and tokens


def test_without_a_ticket_one_is_asked_for_the_token_and_shown_nothing(
    visitor: Page, server: LiveServer, no_complaints: Complaints, hostile: str
):
    no_complaints.but("status of 401", "status of 403")
    visitor.goto("/console/jobs")
    field = visitor.get_by_label("Your token, or the server's")
    field.fill("not-the-token")
    visitor.keyboard.press("Enter")
    expect(visitor.get_by_role("alert")).to_be_visible()
    assert "window.attacked" not in visitor.inner_text("body")
    field.fill(server.token)
    visitor.keyboard.press("Enter")
    expect(visitor.get_by_role("navigation", name="Pages")).to_be_visible()
    assert server.token not in visitor.content() + visitor.evaluate(STORED)


def test_a_ticket_opens_one_browser_once_and_leaves_the_address(
    browser: Browser, server: LiveServer, no_complaints: Complaints
):
    no_complaints.but("status of 401", "status of 403")
    path = server.request("POST", "/v1/console:ticket", {}).json["path"]
    with open_context(browser, server) as first:
        page = first.new_page()
        page.goto(path)
        expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
        ticket = path.partition("ticket=")[2]
        assert ticket not in page.evaluate(STORED) and ticket not in page.content()
        page.go_back()  # to the page before: the ticket is in no entry of the history
        assert ticket not in page.url
    with open_context(browser, server) as thief:
        page = thief.new_page()
        page.goto(path)
        expect(page.get_by_role("alert")).to_contain_text("unknown or was used")
        expect(page.get_by_label("Your token, or the server's")).to_be_visible()
        assert thief.cookies() == []


def test_a_link_of_somebody_else_asks_before_it_signs_in_as_them(console: Page, server: LiveServer):
    server.post("/v1/accounts", {"name": "eve"})
    server.post(
        "/v1/server:setIamPolicy", {"policy": {"bindings": [{"role": "user", "members": ["user:eve"]}]}}
    )
    token = server.post("/v1/tokens", {"account": "eve"})["token"]

    def name() -> str:
        return str(
            console.evaluate("fetch('/v1/accounts:me').then(answer => answer.json()).then(me => me.name)")
        )

    def follow_link() -> Locator:
        path = server.request("POST", "/v1/console:ticket", {}, token=token).json["path"]
        console.goto("/console/machines")
        console.goto(path)
        question = console.get_by_role("dialog", name="Sign in as somebody else?")
        expect(question).to_contain_text("You are signed in as the owner of the server.")
        expect(question).to_contain_text("signs you in as eve")
        assert "ticket" not in console.url and name() == "owner"
        return question

    follow_link().get_by_role("button", name="Keep").click()
    expect(console.get_by_role("navigation", name="Pages")).to_be_visible()
    assert name() == "owner"
    question = follow_link()
    assert axe(console) == []
    question.get_by_role("button", name="Sign in as eve").click()
    expect(console.get_by_role("navigation", name="Pages")).to_be_visible()
    assert name() == "eve"
    server.request("DELETE", "/v1/accounts/eve")


def test_an_invented_ticket_opens_nothing(visitor: Page, no_complaints: Complaints):
    no_complaints.but("status of 401", "status of 403")
    visitor.goto("/console/#ticket=invented")
    expect(visitor.get_by_role("alert")).to_contain_text("unknown or was used")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(console: Page, server: LiveServer):
    console.goto("/console/jobs")
    [cookie] = console.context.cookies()
    assert cookie.get("httpOnly") is True and cookie.get("sameSite") == "Strict"
    assert cookie.get("value", "") not in console.evaluate("document.cookie + JSON.stringify(localStorage)")
    assert server.token not in str(cookie)


def test_signing_out_ends_it_in_this_browser(console: Page, no_complaints: Complaints):
    no_complaints.but("status of 401", "status of 403")
    console.goto("/console/jobs")
    console.locator("summary", has_text="⋯").click()
    console.get_by_role("button", name="Sign out").click()
    expect(console.get_by_label("Your token, or the server's")).to_be_visible()
    assert console.context.cookies() == []


def test_signing_out_in_one_tab_shows_the_others_that_they_are_signed_out(
    console: Page, no_complaints: Complaints
):
    no_complaints.but("status of 401", "status of 403")
    console.goto("/console/jobs")
    other = console.context.new_page()
    other.goto("/console/machines")
    expect(other.get_by_role("heading", name="Machines")).to_be_visible()
    console.bring_to_front()
    console.locator("summary", has_text="⋯").click()
    console.get_by_role("button", name="Sign out").click()
    expect(other.get_by_label("Your token, or the server's")).to_be_visible()


# Hostile jobs


def test_texts_of_a_job_stay_text(console: Page, server: LiveServer, no_complaints: Complaints, hostile: str):
    no_complaints.but(*REFUSALS)
    for address in pages():
        visit(console, address, hostile)
        assert no_complaints.unexpected() == [], address
        assert console.evaluate("window.attacked") is None, address
        assert console.locator("img[src=x], #app script").count() == 0, address
        links = console.evaluate("[...document.querySelectorAll('a[href]')].map(link => link.protocol)")
        assert set(links) <= {"http:", "blob:"}, address
        assert server.token not in console.content() + console.evaluate(STORED), address
        assert console.title() != "owned", address


def test_the_name_of_a_hostile_job_is_shown_as_it_is(console: Page, hostile: str):
    visit(console, JOB, hostile)
    expect(console.get_by_role("heading", level=1)).to_have_text(MARKUP)


@pytest.fixture(scope="module")
def hostile_study(server: LiveServer) -> str:
    """A study whose every name and value attacks pages. The server refuses spaces in names of parameters."""
    name = "".join(MARKUP.split())
    attacks = [MARKUP, LINK, f"{TURNED}{LONG}", f"='{MARKUP}'"]
    parameters = [
        {"parameterId": name, "categoricalValueSpec": {"values": attacks}},
        {"parameterId": f"{TURNED}{LONG}", "doubleValueSpec": {"minValue": 0, "maxValue": 1}},
    ]
    study = asked_study(server, MARKUP, parameters, {"metricId": f"{MARKUP}{LONG}", "goal": "MINIMIZE"})
    for at, value in enumerate(attacks):
        study.create_trial({name: value, f"{TURNED}{LONG}": at / 4}, at)
    running, failed = study.ask(2, client=MARKUP)
    study.measure(running, 1, 0.5)
    study.give_up(failed, MARKUP + LINK + TURNED + LONG)
    return study.name


@ON_BOTH_SCREENS
def test_texts_of_a_study_stay_text(
    console: Page, server: LiveServer, screen: Screen, no_complaints: Complaints, hostile_study: str
):
    _, project, _, location, _, number = hostile_study.split("/")
    for tab in ("", "/trials", "/curves", "/curves?trial=1", "/parallel", "/spec"):
        console.goto(f"/console/studies/{project}/{location}/{number}{tab}")
        expect(console.get_by_role("heading", level=1)).to_have_text(MARKUP)
        expect(console.locator("main .loading, main [aria-busy=true]")).to_have_count(0)
        screenshot(console, f"hostile-study{tab.replace('/', '-')}-{screen}")
        assert no_complaints.unexpected() == [], tab
        assert console.evaluate("window.attacked") is None, tab
        assert console.locator("img[src=x], #app script").count() == 0, tab
        links = console.evaluate("[...document.querySelectorAll('a[href]')].map(link => link.protocol)")
        assert set(links) <= {"http:", "blob:"}, tab
        assert not console.evaluate("document.documentElement.scrollWidth > innerWidth"), f"{tab} is too wide"
    console.goto("/console/studies")
    expect(console.get_by_role("link", name=MARKUP)).to_be_visible()
    assert console.evaluate("window.attacked") is None
    assert not console.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_the_file_of_a_study_runs_nothing(
    browser: Browser, server: LiveServer, hostile_study: str, tmp_path: Path
):
    done = server.cli("study", "show", hostile_study, "--plot", str(tmp_path / "study.html"))
    assert done.returncode == 0, done.stderr
    with browser.new_context() as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "study.html").as_uri())
        expect(page.get_by_role("heading", level=1)).to_have_text(MARKUP)
        assert page.locator("svg").count() >= 3
        assert page.evaluate("window.attacked") is None
        assert page.locator("script, img, a, iframe").count() == 0
        assert TURNED not in page.content()
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert asked == [page.url]


# The policy


def test_every_page_has_a_policy_without_exceptions(server: LiveServer):
    for address in ADDRESSES:
        path = address.path.format(job="p1/us-central1/1")
        answer = server.request("GET", path, token=None)
        policy = answer.headers["content-security-policy"]
        assert answer.status == 200 and "unsafe-" not in policy, path
        for rule in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
            assert rule in policy, path
        assert answer.headers["x-content-type-options"] == "nosniff", path
