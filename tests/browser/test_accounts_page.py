"""The page of accounts: an admin adds people, gives roles and makes tokens; all see to their own tokens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, screenshot
from tests.live import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "2", "--memory", "4GiB") as server:
        yield server
        assert "Traceback" not in server.said(), server.said()


def account(server: LiveServer, name: str, *roles: tuple[str, str]) -> str:
    """A token of a new account with roles in projects; "*" is everywhere."""
    server.post("/v1/accounts", {"name": name})
    for project, role in roles:
        path = "/v1/server" if project == "*" else f"/v1/projects/{project}"
        bindings = server.post(f"{path}:getIamPolicy", {}).get("bindings", [])
        bindings.append({"role": role, "members": [f"user:{name}"]})
        server.post(f"{path}:setIamPolicy", {"policy": {"bindings": bindings}})
    return server.post("/v1/tokens", {"account": name, "title": "of a test"})["token"]


def sign_in(page: Page, token: str, no_complaints: Complaints) -> None:
    no_complaints.but("status of 40[13]")  # before somebody has signed in
    page.goto("/console/accounts")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your tokens")).to_be_visible()


@ON_BOTH_SCREENS
def test_the_owner_adds_people_gives_roles_makes_a_token_and_takes_all_away(
    console: Page, server: LiveServer, screen: Screen
) -> None:
    console.goto("/console/jobs")
    console.get_by_label("Settings").click()
    console.get_by_role("link", name="Accounts").click()
    expect(console.get_by_text("You are the owner of this server")).to_be_visible()
    expect(console.get_by_text("There are no accounts")).to_be_visible()
    for name in ("ann@example.org", "bob"):
        console.get_by_placeholder("ann@example.org").fill(name)
        console.keyboard.press("Enter")
        expect(console.get_by_text(f"Added {name}.")).to_be_visible()
    console.get_by_placeholder("vision").last.fill("seeing")
    console.get_by_role("button", name="Add group").click()
    expect(console.get_by_text("Made the group seeing.")).to_be_visible()
    groups = console.get_by_role("region", name="Groups")
    groups.get_by_role("button", name="Edit").click()
    console.get_by_role("menuitem", name="Members").click()
    console.get_by_label("bob").check()
    console.get_by_role("button", name="Save").click()
    expect(groups.get_by_text("bob")).to_be_visible()
    for who, role, project in (("user:ann@example.org", "user", "vision"), ("group:seeing", "viewer", "")):
        console.get_by_label("Who", exact=True).select_option(who)
        console.get_by_label("Role", exact=True).select_option(role)
        if project:
            console.get_by_label("Project", exact=True).fill(project)
        else:
            console.get_by_label("everywhere").check()
        console.get_by_role("button", name="Give role").click()
        expect(console.get_by_text("Given: ")).to_contain_text(who.partition(":")[2])
    policy = server.post("/v1/projects/vision:getIamPolicy", {})
    assert policy["bindings"] == [{"role": "roles/trainshed.user", "members": ["user:ann@example.org"]}]
    people = console.get_by_role("region", name="Accounts")
    expect(people.get_by_role("row", name="bob")).to_contain_text("viewer everywhere, by seeing")
    people.get_by_role("link", name="tokens of ann@example.org").click()
    console.get_by_role("button", name="New token").click()
    console.get_by_label("What it is for").fill("laptop")
    console.keyboard.press("Enter")
    text = console.locator("dialog pre").inner_text()
    me = server.request("GET", "/v1/accounts:me", token=text)
    assert (me.json["name"], me.json["token"]["title"]) == ("ann@example.org", "laptop")
    console.get_by_role("button", name="I have it").click()
    tokens = console.get_by_role("region", name="Tokens of ann@example.org")
    expect(tokens.get_by_role("row", name="laptop")).to_be_visible()
    assert text not in console.content()
    screenshot(console, f"accounts-of-a-team-{screen}")
    assert axe(console) == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert console.evaluate(wide)
    people.get_by_role("row", name="ann@example.org").get_by_role("button", name="Edit").click()
    console.get_by_role("menuitem", name="Disable").click()
    console.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(people.get_by_role("row", name="ann@example.org")).to_contain_text("disabled")
    assert server.request("GET", "/v1/accounts:me", token=text).status == 401
    console.get_by_role("button", name="Take away … ann@example.org is user in vision").click()
    console.get_by_role("dialog").get_by_role("button", name="Take away").click()
    expect(console.get_by_text("Took away: ann@example.org is user in vision.")).to_be_visible()
    assert "bindings" not in server.post("/v1/projects/vision:getIamPolicy", {})
    people.get_by_role("row", name="bob").get_by_role("button", name="Edit").click()
    console.get_by_role("menuitem", name="Remove").click()
    console.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(console.get_by_text("Removed bob.")).to_be_visible()
    assert [item["name"] for item in server.get("/v1/accounts")["accounts"]] == ["ann@example.org"]


def test_everybody_sees_to_their_own_tokens_and_sees_nobody_else(
    visitor: Page, server: LiveServer, no_complaints: Complaints
) -> None:
    account(server, "bob", ("speech", "user"))
    sign_in(visitor, account(server, "ann", ("vision", "user")), no_complaints)
    refused = len([text for text in no_complaints.heard if "403" in text])
    expect(visitor.get_by_text("You are ann: user in vision.")).to_be_visible()
    assert "bob" not in visitor.content() and not visitor.get_by_role("heading", name="Roles").count()
    visitor.get_by_role("button", name="New token").press("Enter")  # by the keyboard alone
    visitor.keyboard.type("report")
    visitor.keyboard.press("Tab")
    visitor.keyboard.press("Tab")
    visitor.get_by_label("It may do").select_option("viewer")
    visitor.keyboard.press("Tab")
    visitor.keyboard.press("Enter")
    visitor.get_by_role("button", name="I have it").press("Enter")
    row = visitor.get_by_role("row", name="report")
    expect(row).to_contain_text("never")
    expect(row).to_contain_text("viewer")
    row.get_by_role("button", name="Revoke").press("Enter")
    visitor.keyboard.press("Escape")
    expect(row).to_be_visible()
    row.get_by_role("button", name="Revoke").click()
    visitor.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert len([text for text in no_complaints.heard if "403" in text]) == refused  # it asked for no more
    screenshot(visitor, "accounts-own")
    assert axe(visitor) == []


def test_who_has_a_token_with_fewer_rights_is_told_so_and_makes_none(
    visitor: Page, server: LiveServer, no_complaints: Complaints
) -> None:
    account(server, "root", ("*", "admin"))
    token = server.post("/v1/tokens", {"account": "root", "role": "viewer"})["token"]
    sign_in(visitor, token, no_complaints)
    expect(visitor.get_by_text("fewer rights than your account")).to_be_visible()
    assert not visitor.get_by_role("button", name="New token").count()
    assert not visitor.get_by_role("heading", name="Roles").count()


def test_text_of_accounts_never_becomes_markup(console: Page, server: LiveServer) -> None:
    server.post("/v1/accounts", {"name": "ann"})
    title = "<img src=x onerror=alert(1)>"
    server.post("/v1/tokens", {"account": "ann", "title": title})
    console.goto("/console/accounts?of=ann")
    expect(console.get_by_role("cell", name=title, exact=True)).to_be_visible()
    assert not console.locator("main img").count()
