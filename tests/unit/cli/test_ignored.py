import pytest

from trainshed.cli.ignored import Patterns


@pytest.mark.parametrize(
    ("lines", "path", "ignored"),
    [
        ("*.log", "a.log", True),
        ("*.log", "deep/down/a.log", True),
        ("/a.log", "deep/a.log", False),
        ("build/", "build/x", True),
        ("build/", "build", False),
        ("build/", "src/build/x", True),
        ("doc/*.txt", "doc/a.txt", True),
        ("doc/*.txt", "doc/deep/a.txt", False),
        ("doc/**/*.txt", "doc/deep/er/a.txt", True),
        ("doc/**/*.txt", "doc/a.txt", True),
        ("**/data", "x/y/data/z", True),
        ("data/**", "data/x/y", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("# no\n\n", "# no", False),
        ("\\#yes", "#yes", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("[!ab].py", "c.py", True),
        ("[", "[", True),
        ("a.b", "axb", False),
        ("space\\ ", "space ", True),
        ("trailing   ", "trailing", True),
        ("ü*", "über.txt", True),
    ],
)
def test_a_line_means_what_gitignore_says(lines: str, path: str, ignored: bool) -> None:
    assert Patterns(lines.split("\n")).holds(path) is ignored


def test_lines_in_a_folder_speak_of_that_folder_only() -> None:
    patterns = Patterns(["/x", "*.o"], "sub/")
    assert patterns.verdict("sub/x", is_folder=False)
    assert patterns.verdict("sub/deep/y.o", is_folder=False)
    assert patterns.verdict("x", is_folder=False) is None
    assert patterns.verdict("sub/deep/x", is_folder=False) is None
