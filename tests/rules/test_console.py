"""The console keeps its rules of safety, size and layers, and each of these checks can fail."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rules import console
from tests.rules.source import PACKAGE

Rule = Callable[[Path], list[str]]

CONSOLE = PACKAGE / "console"
RULES: list[Rule] = [
    console.long_modules,
    console.unsafe_words,
    console.foreign_addresses,
    console.imports_upwards,
    console.leaking_looks,
    console.borrowed_looks,
]
OFFENCES: list[tuple[Rule, str, str]] = [
    (console.long_modules, "pages/jobs.js", "\n" * 301),
    (console.unsafe_words, "pages/jobs.js", "element.innerHTML = name;\n"),
    (console.unsafe_words, "parts/a.js", "html`<b dangerouslySetInnerHTML=${{ __html: name }} />`;\n"),
    (console.unsafe_words, "parts/a.js", 'html`<b style="width: ${share}%" />`;\n'),
    (console.unsafe_words, "parts/a.js", "html`<b style=${looks} />`;\n"),
    (console.unsafe_words, "lib/a.js", "eval(text);\n"),
    (console.unsafe_words, "lib/a.js", "new Function(text);\n"),
    (console.foreign_addresses, "index.html", '<script src="https://cdn.example/x.js"></script>\n'),
    (console.foreign_addresses, "style.css", "@import url(//fonts.example/x.css);\n"),
    (console.leaking_looks, "pages/a.css", "progress { width: 100%; }\n"),
    (
        console.leaking_looks,
        "pages/a.css",
        ".own { width: 1px; } @media (width < 9px) { b.own, b { width: 1px; } }\n",
    ),
    (console.imports_upwards, "lib/a.js", 'import { Time } from "../parts/time.js";\n'),
    (console.imports_upwards, "parts/a.js", 'import {\n  Jobs,\n} from "../pages/jobs.js";\n'),
    (console.imports_upwards, "parts/a.js", 'const module = import("../pages/jobs.js");\n'),
    (console.imports_upwards, "pages/a.js", 'import "./jobs-columns.js";\n'),
    (console.imports_upwards, "pages/a.js", 'import { go } from "../main.js";\n'),
    (console.imports_upwards, "pages/a.js", 'import { h } from "preact";\n'),
    (console.imports_upwards, "pages/a.js", 'export { useMemo } from "preact/hooks";\n'),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_console_keeps_its_rules(rule: Rule):
    wrong = rule(CONSOLE)
    assert not wrong, "\n".join(["a rule of the console is broken:", *wrong])


def test_the_first_page_is_light():
    if not (CONSOLE / "vendor" / "preact.js").exists():
        pytest.skip("the console's libraries are not here; get them with: scripts/console-assets")
    assert console.heavy_first_page(CONSOLE) == []


def test_a_page_that_needs_the_looks_of_another_is_found(tmp_path: Path):
    for name, text in {
        "pages/a.css": ".far { color: red; } .own b.near { color: red; }",
        "pages/b.js": 'import "../parts/c.js";\nhtml`<b class="near">`;\n',
        "parts/c.js": 'html`<b class="far dim">`;\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    [sentence] = console.borrowed_looks(tmp_path)
    assert "parts/c.js" in sentence and "'far'" in sentence


@pytest.mark.parametrize(("rule", "name", "text"), OFFENCES, ids=lambda part: getattr(part, "__name__", ""))
def test_each_rule_of_the_console_finds_its_offence(rule: Rule, name: str, text: str, tmp_path: Path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    [sentence] = rule(tmp_path)
    assert sentence.startswith(name)


def test_what_keeps_the_rules_of_the_console_is_left_alone(tmp_path: Path):
    for folder in ("pages", "parts", "lib", "vendor"):
        (tmp_path / folder).mkdir()
    (tmp_path / "vendor" / "preact.js").write_text("eval('https://example');" + "\n" * 301)
    (tmp_path / "lib" / "ui.js").write_text('import { h } from "preact";\n')
    (tmp_path / "parts" / "module.js").write_text("const page = import(`../pages/${name}.js`);\n")
    (tmp_path / "pages" / "jobs.js").write_text(
        'import uPlot from "uplot";\nimport { Columns } from "./jobs-columns.js";\n'
        'import { Time } from "../parts/time.js"; // why\nelement.style.width = "1px";\n'
        'document.createElementNS("http://www.w3.org/2000/svg", "svg");\n'
    )
    assert [sentence for rule in RULES for sentence in rule(tmp_path)] == []


def test_a_first_page_that_is_too_large_names_its_largest_files_and_nothing_loaded_later(tmp_path: Path):
    for folder in ("pages", "parts", "vendor"):
        (tmp_path / folder).mkdir()
    (tmp_path / "index.html").write_text('"imports": {"htm": "{files}/vendor/htm.js"}')
    for name in ("icon.svg", "style.css", "pages/jobs.css"):
        (tmp_path / name).write_text("")
    noise = random.Random(7).randbytes
    (tmp_path / "main.js").write_text('import htm from "htm";\nimport(`./pages/later.js`);\n')
    (tmp_path / "vendor" / "htm.js").write_text(noise(20_000).hex())
    (tmp_path / "pages" / "jobs.js").write_text('import {\n  Table,\n} from "../parts/table.js";\n')
    (tmp_path / "parts" / "table.js").write_text(noise(50_000).hex())
    (tmp_path / "pages" / "later.js").write_text(noise(90_000).hex())
    [sentence] = console.heavy_first_page(tmp_path)
    assert "parts/table.js" in sentence and "vendor/htm.js" in sentence and "later" not in sentence
