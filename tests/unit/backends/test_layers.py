"""How far a pull is, from what Docker and Podman say of layers."""

from typing import Any

from trainshed.backends.container.pull import Layers

MIB = 1 << 20


def heard(*told: dict[str, Any]) -> Layers:
    layers = Layers("Pulling image x")
    for one in told:
        layers.update(one)
    return layers


def of(key: str, status: str, current: int = 0, total: int = 0) -> dict[str, Any]:
    detail = {"current": current, "total": total} if total else {}
    return {"id": key, "status": status, "progressDetail": detail}


def test_before_the_registry_has_answered_that_is_said() -> None:
    assert heard().step.text == "Pulling image x: asking its registry"
    assert heard().step.percent is None and heard().is_moving


def test_the_percent_counts_bytes() -> None:
    layers = heard(of("a", "Downloading", 10 * MIB, 40 * MIB), of("b", "Downloading", 30 * MIB, 40 * MIB))
    assert (layers.percent, layers.step.text) == (50, "Pulling image x: 50 %, 40 of 80 MiB")


def test_layers_whose_size_is_not_told_yet_are_taken_to_be_like_the_others() -> None:
    assert heard(of("a", "Pulling fs layer"), of("b", "Downloading", 40 * MIB, 40 * MIB)).percent == 50


def test_a_layer_that_was_here_or_came_before_its_size_was_told_does_not_count() -> None:
    told = (of("a", "Already exists"), of("c", "Download complete"), of("b", "Downloading", 10, 100))
    assert heard(*told).percent == 10


def test_the_percent_never_goes_back_when_podman_comes_to_another_layer() -> None:
    layers = heard(of("a", "Downloading", 90, 100))
    assert layers.percent == 90
    layers.update(of("b", "Downloading", 0, 100))
    assert layers.percent == 90


def test_a_hundred_is_only_said_of_what_is_over() -> None:
    assert heard(of("a", "Downloading", 100, 100)).percent == 99


def test_when_all_bytes_are_here_silence_is_no_matter() -> None:
    layers = heard(of("a", "Downloading", 10, 100), of("a", "Download complete"))
    assert not layers.is_moving
    assert layers.step.text.endswith("it is unpacked")


def test_dockers_words_are_understood_too() -> None:
    layers = heard(
        {"status": "Pulling from library/python", "id": "3"},
        of("a", "Pulling fs layer"),
        of("b", "Waiting"),
        of("a", "Downloading", 50, 100),
        of("a", "Verifying Checksum"),
        of("a", "Extracting", 20, 100),
        {"status": "Digest: sha256:0"},
    )
    assert set(layers.layers) == {"a", "b"} and layers.layers["a"].is_over and layers.is_moving
    assert layers.percent == 50
