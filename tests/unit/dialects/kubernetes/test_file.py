"""Files of manifests: several documents, lines that are counted, indentation that is mended."""

import textwrap
from pathlib import Path

import pytest
import yaml

from trainshed.cli.failure import CommandFailed
from trainshed.client import ApiViolation
from trainshed.dialects.kubernetes.cli.file import documents
from trainshed.dialects.kubernetes.cli.repair import repair

PRINTED = Path(__file__).parents[3] / "acceptance" / "seed_003"

GOOD = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: many
  labels:
    app: digits
    name: odd
spec:
  completions: 2
  parallelism: 2
  template:
    metadata:
      labels:
        app: digits
    spec:
      containers:
      - name: first
        image: a:1
        args:
        - --epochs
        - "5"
        - |
          echo name: x
          - not an item
        env:
        - name: A
          value: "1"
        - name: B
          value: "2"
        resources:
          limits:
            cpu: 1
            nvidia.com/gpu: 1
        volumeMounts:
        - name: data
          mountPath: /data
      - name: second
        image: b:1
      volumes:
      - name: data
        emptyDir: {}
      restartPolicy: Never
"""


def test_the_printed_pod_is_mended_and_the_lines_are_said():
    (found,) = documents("gpu_pod.yaml", (PRINTED / "gpu_pod.yaml").read_text())
    assert found.warning == ("gpu_pod.yaml: the indentation of lines 1-5, 8-10, 18, 22-23, 27 was repaired")
    assert found.fields["metadata"]["name"] == "tensorflow"
    assert found.fields["spec"]["restartPolicy"] == "OnFailure"
    (container,) = found.fields["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert container["volumeMounts"] == [{"name": "nfs-pv", "mountPath": "/tmp/imagenet"}]


def test_the_printed_image_cache_is_mended():
    (found,) = documents("imagecache.yaml", (PRINTED / "imagecache.yaml").read_text())
    assert found.warning == "imagecache.yaml: the indentation of lines 4, 6-7 was repaired"
    assert found.fields["metadata"] == {"name": "tensorflow"}
    assert found.fields["spec"]["images"] == ["registry-vpc.cn-zhangjiakou.aliyuncs.com/eci/tensorflow:1.0"]


@pytest.mark.parametrize("name", ["gpu_pod.yaml", "imagecache.yaml"])
def test_what_was_mended_is_not_mended_again(name: str):
    (found,) = documents(name, (PRINTED / name).read_text())
    (again,) = documents(name, found.text)
    assert (again.fields, again.warning) == (found.fields, "")


def test_what_is_right_is_left_alone_wherever_it_stands():
    for text in (GOOD, textwrap.indent(GOOD, "      ")):
        (found,) = documents("job.yaml", text)
        assert (found.fields, found.moved) == (yaml.safe_load(GOOD), [])


def test_mending_what_is_right_changes_nothing_of_what_it_says():
    mended = repair(GOOD)
    assert mended is not None
    assert yaml.safe_load(mended[0]) == yaml.safe_load(GOOD)


def test_all_indentation_lost_is_found_again_where_every_field_has_one_place():
    gone = ("name: odd", "- |", "echo", "- not", "name: B", 'value: "2"', "name: second", "image: b:1")
    flat = "\n".join(line.lstrip() for line in GOOD.splitlines() if not any(one in line for one in gone))
    (found,) = documents("job.yaml", flat)
    assert found.moved
    right = yaml.safe_load(
        "\n".join(line for line in GOOD.splitlines() if not any(one in line for one in gone))
    )
    assert found.fields == right


def test_an_item_that_could_be_of_two_lists_is_not_guessed():
    with pytest.raises(CommandFailed):
        documents("job.yaml", "\n".join(line.lstrip() for line in GOOD.splitlines() if "|" not in line))


def test_what_cannot_be_mended_is_told_as_it_is():
    with pytest.raises(CommandFailed, match=r"pod.yaml:4"):
        documents("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n\t  name: x\n   nonsense here\n")


def test_several_documents_keep_the_lines_of_the_file():
    text = f"# first\n---\n{GOOD}---\n\n---\n{(PRINTED / 'imagecache.yaml').read_text()}"
    one, other = documents("both.yaml", text)
    assert one.fields == yaml.safe_load(GOOD)
    begin = len(text.splitlines()) - 7
    assert other.moved == [begin + 4, begin + 6, begin + 7]
    told = one.located(
        [ApiViolation("spec.template.spec.containers[1].image", "is not."), ApiViolation("kind", "no.")]
    )
    assert told == ["both.yaml:4: kind no.", "both.yaml:40: spec.template.spec.containers[1].image is not."]


def test_an_empty_file_shows_what_a_manifest_is():
    with pytest.raises(CommandFailed, match="is empty") as error:
        documents("none.yaml", "\n# nothing\n---\n")
    assert "kind: Pod" in error.value.details
