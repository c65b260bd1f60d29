"""What pip prints, as a sentence on how far it is, and as the lines that say why it failed."""

from trainshed.runtimes.progress import MOST_LINES, PipProgress

PIP = """\
Looking in links: /wheels
Collecting torch==2.13.0
  Using cached torch-2.13.0-cp311-cp311-linux.whl (100 MB)
WARNING: Location 'file:///x/' is ignored: it is neither a file nor a directory.
Collecting typing_extensions>=4 (from torch==2.13.0)
Building wheels for collected packages: odd
  Building wheel for odd (setup.py): started
Installing collected packages: typing_extensions, torch, odd
"""


def heard(text: str) -> PipProgress:
    progress = PipProgress()
    for line in text.splitlines():
        progress.hear(line)
    return progress


def test_each_step_is_told_in_its_own_words():
    lines = PIP.splitlines()
    told: list[str] = []
    progress = PipProgress()
    for line in ["", *lines]:
        progress.hear(line)
        told.append(progress.sentence([]))
    assert list(dict.fromkeys(told)) == [
        "making the environment",
        "fetching torch",
        "fetching typing_extensions",
        "building odd",
        "installing typing_extensions (1 of 3)",
    ]


def test_installing_counts_what_lies_there_already_however_it_is_spelled():
    progress = heard(PIP)
    assert progress.sentence(["Typing.Extensions", "pip"]) == "installing torch (2 of 3)"
    assert progress.sentence(["typing_extensions", "torch", "odd"]) == "finishing"


def test_noise_is_not_among_the_last_words():
    assert not any("ignored" in line for line in heard(PIP).last_words())


def test_the_last_words_of_a_failed_step_are_its_own_and_not_pips_remarks_on_it():
    told = heard(
        "error: subprocess-exited-with-error\n\u00d7 git clone did not run successfully.\n"
        "\u2502 exit code: 128\n"
        "\u2570\u2500> See above for output.\n"
        "note: This error originates from a subprocess, and is likely not a problem with pip.\n"
        "hint: See above for details.\n"
    )
    assert told.last_words()[-1].endswith("git clone did not run successfully.")


def test_no_such_version_is_left_out_where_nobody_could_be_asked():
    nothing = [
        "ERROR: Could not find a version that satisfies the requirement x (from versions: none)",
        "ERROR: No matching distribution found for x",
    ]
    retry = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/x/"
    )
    assert heard("\n".join([retry, *nothing])).last_words() == (retry,)
    assert heard("\n".join(nothing)).last_words() == tuple(nothing)


def quoting(*said: str) -> str:
    """Pip, of a build that failed."""
    body = [f"      {line}" for line in said]
    return "\n".join(
        (
            "  error: subprocess-exited-with-error",
            "  \u00d7 Preparing metadata (pyproject.toml) did not run successfully.",
            "  \u2502 exit code: 1",
            f"  \u2570\u2500> [{len(said)} lines of output]",
            *body,
            "      [end of output]",
            "  note: This error originates from a subprocess, and is likely not a problem with pip.",
            "error: metadata-generation-failed",
            "\u00d7 Encountered error while generating package metadata.",
            "\u2570\u2500> See above for output.",
        )
    )


def test_of_a_build_that_failed_the_last_words_are_the_builds_own():
    trace = ("Traceback (most recent call last):", '  File "setup.py", line 2', "RuntimeError: no FOO_HOME")
    step = "\u00d7 Preparing metadata (pyproject.toml) did not run successfully."
    assert heard(quoting(*trace)).last_words() == (step, *trace)
    assert heard(quoting(*quoting(*trace).splitlines())).last_words() == (step, *trace)


def test_a_build_that_said_nothing_leaves_pips_words():
    assert heard(quoting()).last_words()[-1].endswith("generating package metadata.")


def test_of_a_quote_without_its_beginning_the_end_is_kept():
    said = [f"line {number}" for number in range(2 * MOST_LINES)]
    assert heard(quoting(*said)).last_words()[-1] == said[-1]


def test_what_is_kept_of_a_talkative_build_is_bounded():
    assert len(heard("\n".join(map(str, range(10_000)))).last_words()) == MOST_LINES
