"""Metrics in lines that programs print, as they print them."""

import math

import pytest

from trainshed.core.tuning.printed_metric import UsualLines, step_in


def values(line: str, *metrics: str) -> dict[str, float]:
    return {item.name: item.value for item in UsualLines(metrics or ("loss",)).values(line)}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("loss=0.25", 0.25),
        ("loss: 0.25", 0.25),
        ("loss = -1.5e-3 done", -0.0015),
        ("epoch 3 loss=.5, acc=1", 0.5),
        ("{'loss': 0.25, 'epoch': 1.0}", 0.25),
        ('{"loss": "0.25"}', 0.25),
        ("loss: 93.5%", 93.5),
        ("the loss: 0.5.", 0.5),
        ("loss=1, loss=2", 2),
        ("1/9 loss: 4\r2/9 loss: 3", 3),
        ("\x1b[32mloss\x1b[0m=\x1b[1m7\x1b[0m", 7),
        ("loss=+INF", math.inf),
        ("x" * 100_000 + " loss=1", 1),
    ],
)
def test_a_value_is_found(line: str, value: float):
    assert values(line)["loss"] == value


@pytest.mark.parametrize(
    "line",
    [
        "val_loss=1",
        "train/loss: 1",
        "loss is 3",
        "loss=high",
        "loss=0.5abc",
        "loss=1,234",
        "loss=0x10",
        "lossy: 4",
        "loss=",
        "",
        "loss" * 10_000,
        "=" * 100_000,
        "loss : " * 50_000,
        "9" * 100_000,
    ],
)
def test_what_is_no_value_of_that_name_is_left_alone(line: str):
    assert values(line) == {}
    UsualLines(("loss",)).names(line)


def test_nan_is_a_value():
    assert math.isnan(values("loss=nan")["loss"])
    assert "loss" not in values("loss=nano")


def test_names_of_any_letters_are_found_where_they_are_wanted():
    assert values("top 1: 0.5, f1@5=0.3", "top 1", "f1@5") == {"top 1": 0.5, "f1@5": 0.3}
    assert values("eval/loss: 0.5", "eval/loss") == {"eval/loss": 0.5}


def test_other_names_are_told_too_but_not_steps():
    assert UsualLines(("loss",)).names("step: 3 epoch=2 acc=0.5 acc=0.6 eval/f1: 1") == ["acc", "eval/f1"]
    assert UsualLines(("epoch",)).names("epoch=2") == ["epoch"]
    assert values("epoch=2", "epoch") == {"epoch": 2}
    assert values("acc=1") == {}


def test_a_name_that_begins_another_is_told_apart():
    assert values("top 1 error: 3, top 1: 2", "top 1", "top 1 error") == {"top 1 error": 3, "top 1": 2}


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step 7: loss=1", 7),
        ("Epoch 3/10 loss: 1", 3),
        ("Epoch [3/10], Step [100/500], loss: 1", 100),
        ("epoch=2 step=9 global_step=19 loss=1", 19),
        ("{'step': 12, 'loss': 1}", 12),
        ("loss=1", None),
        ("{'loss': 1, 'epoch': 1.5}", None),
        ("5ms/step - loss: 1", None),
        ("footstep 3 loss=1", None),
        ("step 99999999999999999999 loss=1", None),
        ("step 9999999999999999 loss=1", None),
    ],
)
def test_the_step_is_on_the_same_line(line: str, step: int | None):
    assert step_in(line) == step
    assert [item.step for item in UsualLines(("loss",)).values(line) if item.name == "loss"] == [step]
