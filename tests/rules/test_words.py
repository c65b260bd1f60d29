"""The words of the house hold for the whole source and all documents, and each of these checks can fail."""

from pathlib import Path

from tests.rules import words
from tests.rules.source import PACKAGE, ROOT


def test_no_class_name_stands_for_two_things():
    wrong = words.repeated_classes(PACKAGE)
    assert not wrong, "\n".join(wrong)


def test_variables_say_what_they_are():
    wrong = words.empty_names(PACKAGE)
    assert not wrong, "\n".join(wrong)


def test_lines_of_documents_can_be_read_without_scrolling():
    wrong = words.long_document_lines(ROOT)
    assert not wrong, "\n".join(wrong)


def test_a_class_name_in_two_files_is_an_offence(tmp_path: Path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("class Same:\n    pass\n")
    [sentence] = words.repeated_classes(tmp_path)
    assert sentence.startswith("a.py has a class Same, and so has b.py")


def test_more_empty_names_than_the_cap_are_an_offence(tmp_path: Path):
    (tmp_path / "a.py").write_text("def _told(one):\n    found = one\n    return [said for said in found]\n")
    assert words.empty_names(tmp_path, most=4) == []
    [sentence] = words.empty_names(tmp_path, most=3)
    assert sentence.startswith("a.py: 4 variables")


def test_a_long_line_of_a_document_is_an_offence(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("short\n" + "x" * 121 + "\n")
    [sentence] = words.long_document_lines(tmp_path)
    assert sentence == "docs/page.md:2 has 121 characters: break it at 120"
