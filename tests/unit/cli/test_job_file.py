import pytest

from trainshed.cli.failure import CommandFailed
from trainshed.cli.job_file import read
from trainshed.client import ApiViolation

POOLS = [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 2}]
INNER = """workerPoolSpecs:
- machineSpec:
    machineType: n1-standard-4
  replicaCount: 2
"""


def refusal(text: str) -> str:
    with pytest.raises(CommandFailed) as caught:
        read("job.yaml", text)
    return "\n".join([caught.value.message, *caught.value.details])


def test_all_three_shapes_mean_the_same_job() -> None:
    wrapped = "displayName: d\nlabels: {a: b}\njobSpec:\n" + "".join(
        f"  {line}\n" for line in INNER.splitlines()
    )
    mixed = "displayName: d\nlabels: {a: b}\n" + INNER
    expected = {"displayName": "d", "labels": {"a": "b"}, "jobSpec": {"workerPoolSpecs": POOLS}}
    assert read("job.yaml", wrapped).body == expected
    assert read("job.yaml", mixed).body == expected
    assert read("job.yaml", INNER).body == {"jobSpec": {"workerPoolSpecs": POOLS}}


def test_snake_case_is_understood_where_the_shape_depends_on_it() -> None:
    body = read("job.yaml", "display_name: d\njob_spec: {worker_pool_specs: []}\n").body
    assert body == {"displayName": "d", "jobSpec": {"worker_pool_specs": []}}
    body = read("job.yaml", "display_name: d\nworker_pool_specs: []\n").body
    assert body == {"displayName": "d", "jobSpec": {"worker_pool_specs": []}}


def test_fields_nobody_knows_are_left_for_the_server_to_refuse() -> None:
    assert read("job.yaml", INNER + "typo: 1\n").body["jobSpec"]["typo"] == 1


def test_plain_words_are_read_as_a_person_means_them() -> None:
    text = "workerPoolSpecs: []\na: [yes, on, 12:30, 2026-01-31, 010, 1e-3, 0.5, 7, true, ~, 0x10, '5']\n"
    values = read("job.yaml", text).body["jobSpec"]["a"]
    assert values == ["yes", "on", "12:30", "2026-01-31", "010", 0.001, 0.5, 7, True, None, 16, "5"]
    assert [type(value) for value in values[5:9]] == [float, float, int, bool]


def test_anchors_and_merges_work() -> None:
    text = "x: &m {machineType: c}\nworkerPoolSpecs:\n- machineSpec: {<<: *m, acceleratorCount: 1}\n"
    pools = read("job.yaml", text).body["jobSpec"]["workerPoolSpecs"]
    assert pools == [{"machineSpec": {"machineType": "c", "acceleratorCount": 1}}]


def test_every_key_given_twice_is_told_with_both_lines() -> None:
    told = refusal("a: 1\nworkerPoolSpecs:\n- x: 1\n  x: 2\na: 3\n")
    assert "job.yaml:4: x is here a second time, after line 3" in told
    assert "job.yaml:5: a is here a second time, after line 1" in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n\tb: 2\n", "job.yaml:2:1"),
        ("a: 1\n\tb: 2\n", "no tabs"),
        ("a: b: c\n", "job.yaml:1:5"),
        ("a: [1, 2\nb: 3\n", "job.yaml:2"),
        ("a: 1\n---\nb: 2\n", "one file is one job"),
        ("a: *nobody\n", "job.yaml:1:4"),
        ("a: !!python/object:os.system x\nworkerPoolSpecs: []\n", "job.yaml:1"),
        ("", "is empty"),
        ("- a\n- b\n", "fields were expected"),
        ("text", "fields were expected"),
        ("trainingInput: {}\n", "neither jobSpec nor workerPoolSpecs at its top: trainingInput"),
        ("workerPoolSpecs: [.nan]\n", "JSON cannot carry"),
        ("1: 2\n", "job.yaml:1: a field's name is plain text"),
        ("a: &a [*a]\nworkerPoolSpecs: []\n", "contains itself"),
        ("workerPoolSpecs: []\nb: \x00\n", "is not YAML"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line(text: str, expected: str) -> None:
    assert expected in refusal(text)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("job_spec.worker_pool_specs[0].machine_spec.machine_type", 3),
        ("jobSpec.workerPoolSpecs[0].machineSpec.machineType", 3),
        ("custom_job.job_spec.worker_pool_specs[0].replica_count", 4),
        ("job_spec.worker_pool_specs[0].container_spec.image_uri", 2),
        ("job_spec.worker_pool_specs[3]", 1),
    ],
)
def test_what_the_server_refuses_is_found_in_the_file(field: str, line: int) -> None:
    told = read("job.yaml", INNER).located(ApiViolation(field, "is wrong."))
    assert told == f"job.yaml:{line}: {field} is wrong."


def test_a_file_that_is_no_text_is_called_so() -> None:
    with pytest.raises(CommandFailed, match="is not YAML"):
        read("job.yaml", b"\xff\xfe\xfa\x00\x80")


def test_what_is_not_in_the_file_at_all_is_told_without_a_line() -> None:
    assert (
        read("job.yaml", INNER).located(ApiViolation("display_name", "Odd."))
        == "job.yaml: display_name: Odd."
    )
