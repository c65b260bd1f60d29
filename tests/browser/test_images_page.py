"""Images in the console, with a real engine and a registry: pulled, named, removed, and why not."""

import io
import tarfile
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.test_images import flags, submitted
from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, screenshot
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.registry import Registry
from tests.live import PARENT, LiveServer

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.timeout(400)]

IMAGES = f"{PARENT}/images"


@pytest.fixture(scope="module")
def server(podman: Podman) -> Iterator[LiveServer]:
    with LiveServer(*flags(podman)) as server:
        server.get(IMAGES)  # the engine is found before pages are open
        yield server
        assert "Traceback" not in server.said(), server.said()


@pytest.fixture
def pullable(server: LiveServer, registry: Registry) -> str:
    """The name of an image that the registry has and this machine does not."""
    name = registry.image("team/page:1")
    context = tarred(f"FROM {BASE}\nENV PAGE=pullable\n")  # of its own: other tests run containers of BASE
    assert server.request("POST", f"{IMAGES}:build?tag={name}", context).status == 200
    assert server.request("POST", f"{IMAGES}:push", {"name": name}).status == 200
    server.post(f"{IMAGES}:remove", {"names": [name]})
    return name


@ON_BOTH_SCREENS
def test_an_image_is_pulled_named_and_removed_as_a_person_does_it(
    console: Page, screen: Screen, server: LiveServer, pullable: str, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 400")
    console.goto("/console/images")
    rows = console.get_by_role("table", name="Images").locator("tbody tr")
    console.get_by_label("Pull an image").fill(pullable)
    console.get_by_role("button", name="Pull", exact=True).click()
    image = rows.filter(has_text=pullable)
    expect(image).to_be_visible()
    expect(console.get_by_role("progressbar")).to_have_count(0)
    assert axe(console) == []

    image.get_by_role("button", name="Edit").click()
    console.get_by_role("menuitem", name="Add a name").click()
    name = console.get_by_label("New name")
    name.fill("No Name")
    console.get_by_role("button", name="Add", exact=True).click()
    expect(console.get_by_role("alert")).to_contain_text("No Name")
    assert axe(console) == []
    name.fill("page/other:2")
    console.get_by_role("button", name="Add", exact=True).click()
    expect(rows.filter(has_text="page/other:2")).to_be_visible()
    screenshot(console, f"images-{screen}")
    server.post(f"{IMAGES}:remove", {"names": [pullable, "page/other:2"]})


def test_a_pull_that_fails_says_why_in_the_registrys_words(
    console: Page, registry: Registry, no_complaints: Complaints
) -> None:
    no_complaints.but("status of 404")
    console.goto("/console/images")
    console.get_by_label("Pull an image").fill(registry.image("no/such:1"))
    console.get_by_role("button", name="Pull", exact=True).click()
    expect(console.get_by_text("could not be pulled")).to_be_visible()
    assert axe(console) == []
    console.get_by_role("button", name="Dismiss").click()
    expect(console.get_by_text("could not be pulled")).to_have_count(0)


def test_an_image_that_a_job_needs_cannot_be_removed_and_one_that_nobody_needs_can(
    console: Page, server: LiveServer
) -> None:
    for name in ("needed", "spare"):
        context = tarred(f"FROM {BASE}\nENV PAGE={name}\n")
        assert server.request("POST", f"{IMAGES}:build?tag=page/{name}:1", context).status == 200
    job = submitted(server, "page/needed:1", command=["sleep", "600"])
    console.goto("/console/images")
    rows = console.get_by_role("table", name="Images").locator("tbody tr")
    needed, spare = rows.filter(has_text="page/needed:1"), rows.filter(has_text="page/spare:1")
    expect(needed).to_contain_text(job.rpartition("/")[2])
    needed.get_by_role("button", name="Edit").click()
    expect(console.get_by_role("menuitem", name="Remove")).to_have_attribute("aria-disabled", "true")
    console.keyboard.press("Escape")
    server.post(f"/v1/{job}:cancel")
    expect(needed).not_to_contain_text(job.rpartition("/")[2])  # by the hint of its end
    spare.get_by_role("button", name="Edit").click()
    console.get_by_role("menuitem", name="Remove").click()
    dialog = console.get_by_role("dialog")
    expect(dialog).to_contain_text("page/spare:1")
    dialog.get_by_role("button", name="Remove", exact=True).click()
    expect(spare).to_have_count(0)


def tarred(dockerfile: str) -> bytes:
    written, text = io.BytesIO(), dockerfile.encode()
    with tarfile.open(fileobj=written, mode="w") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return written.getvalue()
