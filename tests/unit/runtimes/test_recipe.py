"""Images' names to recipes: Google's, ours and the operator's; the nearest version, and a word about it."""

import pytest

from trainshed.runtimes.recipe import EnvironmentRecipe, Interpreter, layered, recipe_of
from trainshed.runtimes.rows import RuntimeRow, shipped_rows

OWN = Interpreter(path="/usr/bin/python3", version="3.11")
TWELVE = Interpreter(path="/usr/bin/python3.12", version="3.12")
ROWS = shipped_rows()


def found(
    image: str, rows: tuple[RuntimeRow, ...] = ROWS, others: dict[str, Interpreter] | None = None
) -> EnvironmentRecipe:
    recipe = recipe_of(image, rows, OWN, others or {})
    assert recipe is not None
    return recipe


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0:latest", "pytorch"),
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0.py310:latest", "pytorch"),
        ("europe-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest", "pytorch"),
        ("asia-docker.pkg.dev/vertex-ai/training/tf-cpu.2-12.py310:latest", "tensorflow"),
        ("us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310", "tensorflow"),
        ("us-docker.pkg.dev/vertex-ai/training/tf-tpu.2-15-pod-base-cp310:latest", "tensorflow"),
        ("us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest", "sklearn"),
        ("us-docker.pkg.dev/vertex-ai/training/scikit-learn-cpu.0-23:latest", "sklearn"),
        ("us-docker.pkg.dev/vertex-ai/training/xgboost-cpu.2-1:latest", "xgboost"),
        ("us-docker.pkg.dev/vertex-ai/training/jax-gpu.0-4.py310:latest", "jax"),
        ("gcr.io/cloud-aiplatform/training/tf-cpu.2-2:latest", "tensorflow"),
        ("gcr.io/cloud-aiplatform/training/pytorch-gpu.1-7", "pytorch"),
        ("trainshed/pytorch", "pytorch"),
        ("trainshed/pytorch:latest", "pytorch"),
        ("trainshed/sklearn:1.9", "sklearn"),
    ],
)
def test_google_s_names_and_ours_have_a_recipe(image: str, name: str):
    assert found(image).name.startswith(f"trainshed/{name}:")


@pytest.mark.parametrize(
    "image",
    [
        "gcr.io/my-project/trainer:latest",
        "gcr.io/my-project/training/pytorch-gpu.2-0",
        "us-docker.pkg.dev/my-project/training/pytorch-gpu.2-0:latest",
        "us-docker.pkg.dev/vertex-ai/prediction/pytorch-gpu.2-0:latest",
        "us-docker.pkg.dev/vertex-ai/training/ray-gpu.2-9:latest",
        "evil.example/us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0:latest",
        "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest",
        "trainshed/pythonic",
        "trainshed/python:2",
        "trainshed/python:3.99",
        "trainshed/python:3-py3.5",
        "pytorch",
        "",
    ],
)
def test_other_images_have_none(image: str):
    assert recipe_of(image, ROWS, OWN, {}) is None


@pytest.mark.parametrize("image", ["trainshed/python", "trainshed/python:3", "trainshed/python:3.11"])
def test_the_plain_interpreter_is_no_environment_at_all(image: str):
    recipe = found(image)
    assert (recipe.digest, recipe.is_plain, recipe.interpreter) == ("", True, OWN)


def test_another_interpreter_found_here_is_an_environment_of_its_own():
    recipe = found("trainshed/python:3.12", others={"3.12": TWELVE})
    assert recipe.digest
    assert recipe.interpreter == TWELVE


def test_another_version_of_the_framework_is_told_with_both():
    [note] = found("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-0:latest").notes
    assert "pytorch 2.0;" in note
    assert "pytorch 2.13.0 is here" in note
    assert found("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-13:latest").notes == ()
    assert found("trainshed/pytorch:2").notes == ()


def test_python_of_the_name_is_taken_where_it_is_there_and_known_to_work_else_told():
    image = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-13.py312:latest"
    assert found(image, others={"3.12": TWELVE}).interpreter == TWELVE
    assert found(image, others={"3.12": TWELVE}).notes == ()
    [note] = found(image).notes
    assert "Python 3.12;" in note and "Python 3.11 is here" in note
    old = Interpreter(path="/usr/bin/python3.8", version="3.8")
    other = found("gcr.io/cloud-aiplatform/training/pytorch-gpu.2-13.py38", others={"3.8": old})
    assert other.interpreter == OWN  # nothing says that these packages work with it


def test_a_tag_of_ours_may_name_a_python_too():
    """As a job of the older API does, by its runtimeVersion and pythonVersion."""
    version, python = found("trainshed/pytorch:2.0-py3.5").notes
    assert "pytorch 2.0;" in version and "pytorch 2.13.0 is here" in version
    assert "Python 3.5;" in python and "Python 3.11 is here" in python
    assert found("trainshed/pytorch:latest-py3.12", others={"3.12": TWELVE}).interpreter == TWELVE
    assert found("trainshed/pytorch:2.13-py3.12.4", others={"3.12": TWELVE}).notes == ()
    assert found("trainshed/pytorch:2.0-py3.5").digest == found("trainshed/pytorch").digest


def test_of_several_versions_the_nearest_is_taken():
    rows = tuple(
        RuntimeRow(name="team/torch", version=v, google=("torch",)) for v in ("1.9", "2.3", "2.13", "3.0")
    )
    for asked, given in {"2.4": "2.3", "2": "2.13", "1.0": "1.9", "9.0": "3.0", "latest": "3.0"}.items():
        assert found(f"team/torch:{asked}", rows).name == f"team/torch:{given}"


def test_the_operator_s_images_may_be_patterns():
    rows = (RuntimeRow(name="team/base", images=("registry.example/team/*",)),)
    assert found("registry.example/team/trainer:v7", rows).name == "team/base"
    assert recipe_of("registry.example/other/trainer:v7", rows, OWN, {}) is None


def test_the_digest_is_decided_by_everything_that_decides_what_is_inside():
    row = RuntimeRow(name="a", requirements=("x==1",))
    digests = {
        found("a", (row,)).digest,
        found("a", (RuntimeRow(name="a", requirements=("x==2",)),)).digest,
        found(
            "a", (RuntimeRow(name="a", requirements=("x==1",), index="https://example.com/simple"),)
        ).digest,
        found("a", (RuntimeRow(name="a", requirements=("x==1",), python="3.12"),), {"3.12": TWELVE}).digest,
        layered(found("a", (row,)), ("y",)).digest,
        layered(found("a", (row,)), ("z",)).digest,
    }
    assert len(digests) == 6
    assert found("b", (RuntimeRow(name="b", requirements=("x==1",)),)).digest == found("a", (row,)).digest


def test_more_on_top_keeps_what_is_below():
    below = found("trainshed/sklearn")
    top = layered(below, ("six",))
    assert (top.below, top.requirements, top.imports) == (below, ("six",), below.imports)
    assert layered(below, ()) is below
