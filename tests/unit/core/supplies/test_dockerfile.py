"""Which images a Dockerfile reads, for every engine that could read it, and what is refused as unsure."""

import re

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.supplies.dockerfile import Dockerfile, may_read
from trainshed.core.supplies.dockerfile_text import MOST_TEXT

SECRET = "gcr.io/b/secret:1"


def images(text: str, **args: str) -> list[str]:
    return list(Dockerfile(text, args).images)


def refusal(text: str, **args: str) -> str:
    with pytest.raises(Invalid) as error:
        Dockerfile(text, args)
    [violation] = error.value.violations
    assert violation.field == "dockerfile"
    return violation.description


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FROM python:3", ["python:3"]),
        ("from python:3 as base\nFROM base\nFROM Base AS x", ["python:3"]),
        ("FROM scratch", []),
        ("\ufeffFROM --platform=$BUILDPLATFORM a/b@sha256:" + "0" * 64, ["a/b@sha256:" + "0" * 64]),
        ("FROM a\r\nCOPY --from=gcr.io/b/secret:1 \\\r\n  /x /y\r\n", ["a", SECRET]),
        ("FROM a\nCOPY --chown=1 --from=b /x /y", ["a", "b"]),
        ("FROM a AS one\nFROM b\nCOPY --from=0 x y\nCOPY --from=one x y", ["a", "b"]),
        ("FROM a\nCOPY --from=0 x y\nCOPY --from=1 x y", ["a", "0", "1"]),
        (
            "FROM a\nRUN --mount=type=bind,from=b,target=/x \\\n # remark\n\n --mount=from=c true",
            ["a", "b", "c"],
        ),
        ("FROM a\nRUN --mount=type=cache,target=/from true", ["a"]),
        ("FROM a\nRUN true --from=b", ["a"]),
        ("FROM a\nCOPY <<X <<-'Y' /\nfrom os import x\nX\n\tnone\n\tY\nFROM b", ["a", "b"]),
        ("FROM a\nRUN cat <<<word && test 1 << 2\nFROM b", ["a", "b"]),
        ("# escape=\\\n# syntax=gcr.io/b/front\nFROM a", ["a"]),
        ("FROM a\n# FROM b\n  # FROM c\nRUN x \\\n# FROM d\n  && y", ["a"]),
        ("FROM a\nONBUILD COPY . /app\nONBUILD RUN pip install -r x", ["a"]),
    ],
)
def test_the_images_are_those_of_from_copy_and_mounts_and_no_stages(text: str, names: list[str]) -> None:
    assert images(text) == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ARG X=a\nFROM $X", "a"),
        ("ARG X=a\nFROM ${X}:1", "a:1"),
        ("ARG X\nFROM ${X:-gcr.io/b/secret}:1", SECRET),
        ("FROM ${X-a}", "a"),
        ("ARG A=b\nARG X=gcr.io/${A}/secret:1 \\\n  Y=1\nFROM $X", SECRET),
        ("ARG X='a'\nFROM ${X:+gcr.io/b/secret:${Y:-1}}", SECRET),
        ('ARG X="gcr.io/b"\nFROM $X/secret:1', SECRET),
        ("ARG X=a\nARG X=b\nFROM $X", "b"),
        ("ARG given=a\nFROM $given", "by-argument"),
        ("ARG given\nFROM $given", "by-argument"),
        ("ARG X=a\nFROM $X\nARG X=b", "a"),
    ],
)
def test_variables_before_the_first_from_have_their_values(text: str, name: str) -> None:
    assert images(text, given="by-argument") == [name]


@pytest.mark.parametrize(
    "text",
    [
        "FROM $X",
        "ARG X\nFROM $X",
        "FROM given",  # no variable: an image
        "FROM $given",
        "FROM a\nARG X=b\nFROM $X",
        "ARG X=$(id)\nFROM $X",
        "ARG X=a\nFROM ${X%a}",
        "ARG X=a\nFROM ${X",
        "ARG X=a\nFROM \\$X",
        'FROM "a"',
        "FROM a'b'",
        "FROM " + "${X:-" * 50 + "a" + "}" * 50,
        "ARG A=aaaaaaaaaa\n" + "ARG A=$A$A\n" * 30 + "FROM $A",
    ],
)
def test_a_variable_without_a_value_is_refused_with_its_line_and_what_to_do(text: str) -> None:
    if text == "FROM given":
        assert images(text) == ["given"]
        return
    words = refusal(text, given="by-argument")
    assert words.startswith(f"Line {text.count(chr(10)) + 1} of the Dockerfile names its image by")
    assert "--build-arg" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# escape=`\nFROM a", "Line 1 of the Dockerfile sets another escape character"),
        ("# syntax=x\n\n#ESCAPE = ` \nFROM a", "Line 3 of the Dockerfile sets another escape character"),
        ("FROM \\\n gcr.io/b/secret", "write FROM on one line"),
        ("FROM a b", "must read FROM IMAGE"),
        ("FROM a AS b c", "must read FROM IMAGE"),
        ("FROM a AS -b", "names a stage"),
        ("FROM docker://gcr.io/b/secret:1", "names no image"),
        ("FROM containers-storage:gcr.io/b/secret:1", "names no image"),
        (f"FROM {'0' * 64}", "is the id of an image"),
        ("FROM sha256:beef", "is the id of an image"),
        ("FROM a\nCOPY --from=$X x y", "write the image or the stage itself"),
        ('FROM a\nCOPY --from="b" x y', "has quotes"),
        ("FROM a\nCOPY --fr\\om=b x y", "has quotes"),
        ("FROM a\nCOPY --fr\\\nom=b x y", "inside of a flag"),
        ("FROM a\nRUN --mount='type=bind,from=b' x", "has quotes"),
        ("FROM a\nONBUILD COPY --from=b x y", "has `from` in an ONBUILD"),
        ("FROM a\nONBUILD RUN --mount=fr\\om=b x", "has `from` in an ONBUILD"),
        ("FROM a\n//syntax=b", "begins with no instruction"),
        ("FROM a\nRUN x\x0cFROM b", "control character"),
        ("FROM a\nRUN x\rFROM b", "control character"),
        # Where one engine reads on, another begins anew.
        (
            "FROM a\nRUN cat <<X\nFROM gcr.io/b/secret:1\nX\n",
            "Line 3 of the Dockerfile could be read as FROM",
        ),
        ("FROM a\nRUN cat <<X\nFR\\\nOM gcr.io/b/secret:1\nX\n", "Line 3 of the Dockerfile could be read as"),
        ("FROM a\nRUN cat <<X\nCOPY --from=b x y\nX\n", "could be read as an instruction"),
        ("FROM a\nRUN cat <<X\nONBUILD x\nX\n", "could be read as an instruction"),
        ("FROM a\nRUN cat <<X\nRUN --mount=type=cache,target=/c x\nX\n", "could be read as an instruction"),
        ("FROM a\nRUN x \\\\\nFROM b", "Line 3 of the Dockerfile could be read as FROM"),
        ("FROM a\nRUN x \\\n  # y\nFROM b AS c", "Line 4 of the Dockerfile could be read as FROM"),
        ("FROM a\nRUN x \\\n\nFROM b \\\n\nAS c", "Line 4 of the Dockerfile could be read as FROM"),
        ("FROM a\nENV x=\\\nRUN --mount=from=b x", "could be read as an instruction"),
        ("FROM a\nRUN x <<E\nFROM b", "has no end"),
        ("FROM a\nRUN x<<E\nE", "inside of a word"),
        ("FROM a\nRUN x '<<E'\nE", "inside of a word"),
        ("FROM a\nRUN x <<$E\nE", "inside of a word"),
        ("FROM a\n\\\n", "begins with no instruction"),
        ("x" * 200_000, "longer than"),
        ("FROM a\nRUN " + "x\\\n" * 100, "too many lines"),
    ],
)
def test_what_engines_could_take_otherwise_is_refused(text: str, words: str) -> None:
    assert words in refusal(text)


def test_ids_take_the_places_of_names_and_nothing_else_changes() -> None:
    text = (
        "# syntax=gcr.io/b/front\n"
        "ARG V=3\n"
        "FROM python:${V} AS Base\n"
        "FROM base\n"
        "COPY --chown=1 --from=busybox:1 \\\n  /x /y\n"
        "COPY --from=base x y\n"
        "RUN --mount=type=bind,from=busybox:1,target=/m cp /m/x / # busybox:1\n"
    )
    assert Dockerfile(text, {}).with_images({"python:3": "ID1", "busybox:1": "ID2"}) == (
        "#\n"
        "ARG V=3\n"
        "FROM ID1 AS Base\n"
        "FROM Base\n"
        "COPY --chown=1 --from=ID2 \\\n  /x /y\n"
        "COPY --from=Base x y\n"
        "RUN --mount=type=bind,from=ID2,target=/m cp /m/x / # busybox:1\n"
    )


def test_caches_are_those_of_the_project_under_whatever_name() -> None:
    def caches(project: str, *mounts: str) -> list[str]:
        text = "FROM scratch\n" + "".join(f"RUN --mount={mount} x\n" for mount in mounts)
        made = Dockerfile(text, {}, project).with_images({})
        return re.findall("id=([0-9a-f]{32})(?:,| )", made)

    ways = ("type=cache,target=/c", "dst=/c,type=CACHE,sharing=locked", "type=cache,id=/c,target=/other")
    own, others = caches("speech", *ways), caches("vision", *ways)
    assert len(own) == 3 and len({*own}) == len({*others}) == 1 and own[0] != others[0]
    [guessed] = caches("speech", f"type=cache,id={others[0]},target=/c")
    assert guessed not in (own[0], others[0])
    assert caches("speech", "type=bind,source=cache,target=/c") == []


@pytest.mark.parametrize(
    "mount",
    [
        "type=$X,target=/c",
        "type=cache,id=../../x,target=/c",
        "source=a/..,target=/c",
        "source=$X,target=/c",
        "type=bind,type=cache,target=/c",
        "target=/c,source=a,source=b",
        "target=/c,rw",
        "target=/c,ro=false",
        "target=/c,bind-propagation=shared",
    ],
)
def test_a_mount_that_may_lead_elsewhere_is_refused(mount: str) -> None:
    assert "Line 2 of the Dockerfile has a mount" in refusal(f"FROM a\nRUN --mount={mount} x")


def test_a_part_is_mounted_of_the_context_alone() -> None:
    """Links in an image or a cache would lead old engines out of it."""
    for mount in ("from=b,source=/c,target=/d", "type=cache,src=c,target=/d"):
        assert "mount all of it" in refusal(f"FROM a\nRUN --mount={mount} x")
    text = "FROM a\nRUN --mount=source=b/c,target=/d --mount=from=e,target=/f x\nRUN --mount=src=b/c,dst=/d y"
    assert Dockerfile(text, {}).sources == {"b/c": 1}


@pytest.mark.parametrize(
    "step", ["COPY --from=a b c", "RUN true\nFROM a", 'COPY --fr"o"m=a', "Run --MOUNT=FR\\OM=a"]
)
def test_a_step_for_later_builds_that_may_name_an_image_is_known(step: str) -> None:
    assert may_read(step)
    assert not may_read("COPY . /app")


@pytest.mark.parametrize(
    "piece", ["run \\\n", "run\\\n", "from \\\n", "${X:-", "copy --a \\\n", "run <<A <<A \\\n"]
)
@pytest.mark.parametrize("begin", ["FROM a\nRUN x \\\n", "FROM ", "ARG X="])
def test_a_hostile_text_is_read_to_its_end(piece: str, begin: str) -> None:
    text = f"{begin}{piece * (MOST_TEXT // len(piece))}"[: MOST_TEXT - 10] + "\nNONE"
    assert "of the Dockerfile" in refusal(text)
