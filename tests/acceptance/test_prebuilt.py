"""The C programs of an image of the server are compiled when it is built: no compiler is needed later."""

import shutil
from pathlib import Path

import pytest

from trainshed.backends.machine import compiled as programs

PACKAGE = Path(programs.__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc` is installed")


def test_what_was_prebuilt_is_found_where_there_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prebuilt, empty = tmp_path / "prebuilt", tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr(programs, "PREBUILT", prebuilt)
    assert programs.prebuild(prebuilt) == []
    for source in PACKAGE.glob("*/*.c"):
        program = programs.compiled(source, empty, compiler="no-compiler")
        assert program is not None and program.parent == prebuilt, source.name
    assert not list(empty.iterdir())


def test_a_program_of_another_source_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PREBUILT", tmp_path)
    source = tmp_path / "answer.c"
    source.write_text("int main(void) { return 2; }\n")
    assert programs.compiled(source, tmp_path) is not None
    assert programs.compiled(source, tmp_path, compiler="no-compiler") is not None
    source.write_text("int main(void) { return 2; } /* changed */\n")
    assert programs.compiled(source, tmp_path, compiler="no-compiler") is None
