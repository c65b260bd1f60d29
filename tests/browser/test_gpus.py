"""GPUs in the console: who holds which, what each does, and their graphs. The driver is a pretended one."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests import pretended_gpus
from tests.browser.page import ON_BOTH_SCREENS, Screen, axe, screenshot
from tests.browser.test_graphs import address_of, graph, is_drawn
from tests.browser.test_machines_page import row
from tests.live import LiveServer, pool, python, until

pytestmark = pytest.mark.slow

STAYS = python("import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(1000)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    env = pretended_gpus.env(tmp_path_factory.mktemp("driver"), count=4)
    with LiveServer("--cpus", "16", "--memory", "128GiB", env=env) as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    """The full name of a job that runs with three of the four GPUs, of which there are samples."""
    machine = {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4"}
    two = pool(STAYS) | {"machineSpec": {**machine, "acceleratorCount": 2}}
    third = pool(STAYS) | {"machineSpec": {**machine, "acceleratorCount": 1}}
    name = server.submit(pools=[two, third], name="with GPUs")
    until(lambda: len(server.get(f"/v1/{name}:graphs")["usage"]["times"]) >= 3)
    return name


@ON_BOTH_SCREENS
def test_each_gpu_is_shown_with_who_holds_it_and_what_it_does(
    console: Page, job: str, screen: Screen
) -> None:
    console.goto("/console/machines")
    expect(row(console, "Machines", "local")).to_contain_text("1 of 4 free")
    expect(row(console, "Machines", "local")).to_contain_text(pretended_gpus.NAME)
    gpus = console.get_by_role("table", name="GPUs").locator("tbody tr")
    expect(gpus).to_have_count(4)
    holders = ("workerpool0-0", "workerpool0-0", "workerpool1-0")
    for number, task in enumerate(holders):
        expect(gpus.nth(number)).to_contain_text("with GPUs")
        expect(gpus.nth(number)).to_contain_text(task)
        expect(gpus.nth(number)).to_contain_text(f"{number + 1}0 %")
        expect(gpus.nth(number)).to_contain_text(f"{number + 1}.0 GiB of 16.0 GiB")
    expect(gpus.nth(3)).to_contain_text("free")
    expect(gpus.nth(3)).to_contain_text("40 %")  # somebody uses it whom the server has not given it
    expect(row(console, "Replicas and what they hold", "workerpool0-0")).to_contain_text("0, 1")
    assert axe(console) == []
    assert console.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screenshot(console, f"gpus-{screen}")


@ON_BOTH_SCREENS
def test_graphs_have_a_line_for_each_gpu_of_each_replica(console: Page, job: str, screen: Screen) -> None:
    console.goto(address_of(job))
    for title in ("GPU use", "GPU memory"):
        is_drawn(graph(console, title))
    console.get_by_label("Filter graphs by name").fill("gpu")
    expect(graph(console, "CPU")).to_have_count(0)
    console.get_by_text("Numbers as a table").click()
    for quantity, label, value in (
        ("GPU use", "workerpool0-0 GPU 0", "10 %"),
        ("GPU use", "workerpool0-0 GPU 1", "20 %"),
        ("GPU memory", "workerpool1-0 GPU 2", "3.0 GiB"),
    ):
        expect(console.get_by_role("row", name=re.compile(f"{quantity}.*{label}.*{value}"))).to_be_visible()
    screenshot(console, f"gpu-graphs-{screen}")
