"""A page names all modules it needs: those of its address, with what they import."""

import re

import pytest

from trainshed import console
from trainshed.console.modules import pages_at, with_imports


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("", ["jobs"]),
        ("jobs", ["jobs"]),
        ("jobs/p/us-central1/7", ["job", "job-overview"]),
        ("jobs/p/us-central1/7/logs", ["job", "job-logs"]),
        ("studies", ["studies"]),
        ("studies/p/us-central1/7/trials", ["study", "study-trials"]),
        ("buckets/b/folder/file", ["buckets"]),
        ("new", ["new"]),
    ],
)
def test_an_address_shows_a_page_and_perhaps_its_tab(address: str, shown: list[str]):
    assert pages_at(address) == shown


def test_a_module_needs_what_it_imports_and_what_that_imports_but_nothing_it_may_load_later():
    texts = {
        "pages/a.js": 'import {\n  B,\n} from "../parts/b.js";\nimport h from "lib";\nimport("./c.js");\n',
        "parts/b.js": 'export { d } from "./d.js";\n',
        "parts/d.js": 'import "./b.js"; // each other\nimport "./gone.js";\n',
        "vendor/lib.js": "",
        "pages/c.js": "",
    }
    needed = with_imports(["pages/a.js"], texts, {"lib": "vendor/lib.js"})
    assert needed == ["pages/a.js", "parts/b.js", "parts/d.js", "vendor/lib.js"]


@pytest.mark.skipif(not console.is_complete(), reason="needs the console's libraries: scripts/console-assets")
def test_the_page_of_a_log_names_its_modules_and_looks_and_none_of_other_pages():
    text = console.page("jobs/p/us-central1/7/logs").file.content.decode()
    named = re.findall(r'href="/console/files/\w+/([^"]+)"', text)
    assert {"main.js", "pages/job-logs.js", "parts/log-view.js", "vendor/preact.js"} <= set(named)
    assert {"pages/job.css", "pages/job-logs.css"} <= set(named)
    assert not any(name.startswith("pages/jobs") for name in named)
    assert "{" + "files}" not in text and "{" + "modules}" not in text


@pytest.mark.skipif(not console.is_complete(), reason="needs the console's libraries: scripts/console-assets")
@pytest.mark.parametrize("address", ["nothing", "nothing/at/all", "jobs/../../secret", "jobs/p/l/7/no-tab"])
def test_an_address_without_a_page_has_the_frame_that_says_so(address: str):
    assert b"/main.js" in console.page(address).file.content
