"""Buckets in the console: found, looked at, uploaded to, deleted from, restored, the way a person does it."""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.page import ON_BOTH_SCREENS, Complaints, Screen, axe, screenshot
from tests.homes.many_objects import keep_objects
from tests.live import LiveServer

MANY = "many"  # a bucket that is there before the server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    server = LiveServer("--cpus", "4", "--memory", "8GiB", "--engine", "none")
    keep_objects(server.home, MANY, (f"f/{number:05}" for number in range(1100)))  # more than a page
    with server:
        yield server


def bucket(server: LiveServer, name: str, **more: object) -> str:
    assert server.request("POST", "/storage/v1/b?project=p1", {"name": name, **more}).status == 200
    return name


def put(server: LiveServer, bucket: str, name: str, data: bytes, kind: str = "application/octet-stream"):
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(name, safe='')}"
    assert server.request("POST", path, data, headers={"Content-Type": kind}).status == 200


def png(width: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    lines = zlib.compress(b"\0" * (width + 1))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


@ON_BOTH_SCREENS
def test_a_bucket_is_made_browsed_and_its_objects_looked_at(
    console: Page, server: LiveServer, screen: Screen
):
    name = f"models-{screen.width}"
    console.goto("/console/buckets")
    console.get_by_role("button", name="New bucket").click()
    console.get_by_label("Name").fill(name)
    console.get_by_role("button", name="Make the bucket").click()
    expect(console.get_by_role("heading", name="Nothing is here")).to_be_visible()
    put(server, name, "runs/a/metrics.json", b'{"loss":0.25,"note":"<script>alert(1)</script>"}')
    put(server, name, "runs/a/points.csv", b'step,note\n1,"a ""b"", c"\n2,\n')
    put(server, name, "runs/plot.png", png(7))  # as a job stores it: without a type
    put(server, name, "runs/page.html", b"<script>document.title='mine'</script>", "text/html")
    put(server, name, "big.log", b"a line\n" * 100_000)
    put(server, name, "odd//x.txt", "grüße".encode())
    put(server, name, "weights.bin", bytes(range(256)))
    console.reload()
    console.get_by_role("link", name="runs/").click()
    assert console.url.endswith(f"/console/buckets/{name}/runs")
    assert axe(console) == []
    screenshot(console, f"buckets-folder-{screen}")
    console.get_by_role("link", name="plot.png", exact=True).click()
    drawn = "() => document.querySelector('img.preview')?.naturalWidth === 7"
    console.wait_for_function(drawn)
    console.go_back()
    console.get_by_role("link", name="page.html", exact=True).click()
    expect(console.get_by_label("Content")).to_have_text("<script>document.title='mine'</script>")
    assert console.title() == "Trainshed"
    console.get_by_role("link", name="runs", exact=True).click()
    console.get_by_role("link", name="a/", exact=True).click()
    console.get_by_role("link", name="metrics.json", exact=True).click()
    expect(console.get_by_label("Content")).to_contain_text('  "loss": 0.25,')
    console.get_by_role("button", name="As stored").click()
    expect(console.get_by_label("Content")).to_contain_text('{"loss":0.25,')
    console.goto(f"/console/buckets/{name}/runs/a?object=runs/a/points.csv")
    expect(console.get_by_role("cell", name='a "b", c')).to_be_visible()
    assert axe(console) == []
    console.goto(f"/console/buckets/{name}?object=big.log")
    expect(console.get_by_text("The first 256 KiB of 684 KiB.")).to_be_visible()
    console.goto(f"/console/buckets/{name}?object=weights.bin")
    expect(console.get_by_text("This is no text")).to_be_visible()
    console.goto(f"/console/buckets/{name}")
    console.get_by_role("link", name="odd/").click()
    console.get_by_role("link", name="/", exact=True).click()
    console.get_by_role("link", name="x.txt", exact=True).click()
    expect(console.get_by_label("Content")).to_have_text("grüße")
    assert console.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_files_and_folders_are_uploaded_and_nothing_is_replaced_unasked(
    console: Page, server: LiveServer, tmp_path: Path, no_complaints: Complaints
):
    no_complaints.but("status of 412")  # the refusal that is brought about
    name = bucket(server, "uploads", versioning={"enabled": True})
    put(server, name, "small.txt", b"old")
    (tmp_path / "small.txt").write_text("new")
    (tmp_path / "large.bin").write_bytes(b"0123456789abcdef" * (1 << 20))  # 16 MiB: in pieces
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "inner" / "leaf.txt").write_text("leaf")
    console.goto(f"/console/buckets/{name}")
    expect(console.get_by_role("link", name="small.txt", exact=True)).to_be_visible()
    files = console.locator("input[aria-label='Files to upload']")
    files.set_input_files([tmp_path / "small.txt", tmp_path / "large.bin"])
    expect(console.get_by_role("dialog", name="Replace what is there?")).to_contain_text("small.txt")
    console.get_by_role("button", name="Keep").click()
    expect(console.get_by_text("Uploaded 1 of 1 files")).to_be_visible()
    path = f"/download/storage/v1/b/{name}/o"
    assert server.request("GET", f"{path}/small.txt?alt=media").body == b"old"
    assert server.request("GET", f"{path}/large.bin?alt=media").body == (tmp_path / "large.bin").read_bytes()
    files.set_input_files(tmp_path / "small.txt")
    console.get_by_role("button", name="Replace 1").click()
    expect(console.get_by_text("Uploaded 1 of 1 files")).to_be_visible()
    assert server.request("GET", f"{path}/small.txt?alt=media").body == b"new"
    console.locator("input[aria-label='Folder to upload']").set_input_files(tmp_path / "folder")
    console.get_by_role("link", name="folder/").click()
    console.get_by_role("link", name="inner/").click()
    with console.expect_download() as download:
        console.get_by_role("link", name="Download leaf.txt").click()
    assert download.value.suggested_filename == "leaf.txt"
    assert Path(download.value.path()).read_text() == "leaf"
    console.goto(f"/console/buckets/{name}?object=small.txt")
    console.get_by_role("button", name="Restore").click()
    expect(console.get_by_label("Content")).to_have_text("old")


def drop(page: Page, *paths: Path) -> None:
    """Drag files and folders from a file manager over the folder that is shown, and let go."""
    session = page.context.new_cdp_session(page)
    box = page.locator(".folder").bounding_box()
    assert box is not None
    place = {"x": box["x"] + 40, "y": box["y"] + 40}
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
    expect(page.locator(".folder.dropping")).to_be_visible()
    session.send("Input.dispatchDragEvent", {"type": "drop", **place, "data": data})


@ON_BOTH_SCREENS
def test_files_and_folders_are_dropped_into_a_folder(
    console: Page, server: LiveServer, tmp_path: Path, screen: Screen
):
    name = bucket(server, f"dropped-{screen.width}")
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "data" / "deep" / "leaf.txt").write_text("leaf")
    for number in range(120):  # browsers tell a hundred of a folder at a time
        (tmp_path / "data" / f"{number:03}.txt").write_text(str(number))
    console.goto(f"/console/buckets/{name}/in")
    expect(console.get_by_role("heading", name="Nothing is here")).to_be_visible()
    drop(console, tmp_path / "notes.txt", tmp_path / "data")
    expect(console.get_by_text("Uploaded 122 of 122 files")).to_be_visible()
    expect(console.locator(".folder.dropping")).to_have_count(0)
    expect(console.get_by_role("link", name="notes.txt", exact=True)).to_be_visible()
    console.get_by_role("link", name="data/").click()
    expect(console.get_by_role("link", name="119.txt", exact=True)).to_be_visible()
    path = f"/download/storage/v1/b/{name}/o/{quote('in/data/deep/leaf.txt', safe='')}?alt=media"
    assert server.request("GET", path).body == b"leaf"


def test_an_upload_that_is_cut_off_goes_on_where_it_stopped(
    console: Page, server: LiveServer, tmp_path: Path, no_complaints: Complaints
):
    no_complaints.but("ERR_FAILED", "ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED")
    name = bucket(server, "resumed")
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(range(256)) * (20 << 12))  # 20 MiB: three pieces
    sent: list[str] = []

    def cut_off_once(route: Route) -> None:
        sent.append(route.request.headers["content-range"])
        if len(sent) == 2:
            server.kill()
            route.abort()
            server.start()
        else:
            route.continue_()

    console.route(lambda url: "upload_id=" in url, cut_off_once)
    console.goto(f"/console/buckets/{name}")
    console.locator("input[aria-label='Files to upload']").set_input_files(large)
    expect(console.get_by_text("Uploaded 1 of 1 files")).to_be_visible()
    begins = [text.removeprefix("bytes ").partition("-")[0].partition("/")[0] for text in sent]
    assert begins == ["0", str(8 << 20), "*", str(8 << 20), str(16 << 20)]
    path = f"/download/storage/v1/b/{name}/o/large.bin?alt=media"
    assert server.request("GET", path).body == large.read_bytes()


def test_many_objects_come_in_pages_are_sorted_and_deleted_as_counted(console: Page, server: LiveServer):
    name = MANY
    put(server, name, "f/zz-largest", b"x" * 5000)
    for number in range(20):
        put(server, name, f"d/{number}", b"x" * 100)
    console.goto(f"/console/buckets/{name}/f")
    expect(console.get_by_text("1,000 shown")).to_be_visible()
    console.get_by_role("link", name="Next page").click()
    expect(console.get_by_role("link", name="01000", exact=True)).to_be_visible()
    console.get_by_role("button", name="Size").click()
    console.get_by_role("button", name="Size").click()
    expect(console.get_by_text("The first 1,000 of 1,101, sorted.")).to_be_visible()
    expect(console.get_by_role("row").nth(1)).to_contain_text("zz-largest")
    console.get_by_role("searchbox").fill("000")
    expect(console.get_by_text("100 shown")).to_be_visible()
    console.goto(f"/console/buckets/{name}")
    console.get_by_label("Choose d/").check()
    console.get_by_role("button", name="Delete 1").click()
    expect(console.get_by_text("20 objects, 2.0 KiB. This cannot be undone.")).to_be_visible()
    put(server, name, "d/7", b"new")  # since they were counted
    asked: list[str] = []
    console.on("request", lambda request: asked.append(f"{request.method} {urlsplit(request.url).path}"))
    console.get_by_role("button", name="Delete", exact=True).click()
    dialog = console.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_have_text("19 of 20 objects deleted. The rest stays:")
    expect(dialog.get_by_text("d/7: It was replaced meanwhile.")).to_be_visible()
    assert [line for line in asked if not line.startswith("GET")] == ["POST /batch/storage/v1"]
    dialog.get_by_role("button", name="Close").last.click()
    console.get_by_label("Choose d/").check()
    console.get_by_role("button", name="Delete 1").click()
    expect(dialog.get_by_text("1 object, 3 B.")).to_be_visible()
    console.get_by_role("button", name="Delete", exact=True).click()
    expect(console.get_by_role("link", name="d/")).to_have_count(0)
    assert "items" not in json.loads(server.request("GET", f"/storage/v1/b/{name}/o?prefix=d/").body)
