"""What the kernel's counters tell, and what they do not."""

from pathlib import Path

import pytest

from trainshed.backends.process import oom


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("pgfault 7\noom_kill 3\nnuma_hit 1\n")
    monkeypatch.setattr(oom, "_VMSTAT", vmstat)
    return vmstat


def test_a_counter_that_has_risen_tells_of_a_kill(machine: Path) -> None:
    assert oom.kills() == 3
    assert oom.killed_for_memory(3, None) == ""
    assert "machine" in oom.killed_for_memory(2, None)


def test_what_was_not_counted_before_tells_nothing(machine: Path) -> None:
    assert oom.killed_for_memory(None, None) == ""
    machine.write_text("pgfault 7\n")
    assert oom.kills() is None
    assert oom.killed_for_memory(2, None) == ""
    machine.unlink()
    assert oom.kills() is None


@pytest.mark.parametrize(("count", "told"), [(0, False), (1, True)])
def test_the_runs_own_group_knows_better_than_the_machine(
    machine: Path, tmp_path: Path, count: int, told: bool
) -> None:
    (tmp_path / "memory.events").write_text(f"low 0\noom 4\noom_kill {count}\noom_group_kill 0\n")
    assert ("this replica" in oom.killed_for_memory(0, str(tmp_path))) is told
    assert bool(oom.killed_for_memory(0, str(tmp_path))) is told


def test_a_group_without_a_memory_controller_leaves_it_to_the_machine(machine: Path, tmp_path: Path) -> None:
    assert "machine" in oom.killed_for_memory(2, str(tmp_path))


def test_a_kill_of_long_ago_does_not_count_as_recent(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    time = [0.0]
    monkeypatch.setattr(oom.time, "monotonic", lambda: time[0])
    recent = oom.Kills()

    def look(*moments: float) -> None:
        for time[0] in moments:
            recent.look()

    machine.write_text("oom_kill 4\n")
    look(0, 1, 2, 3, 6, 12)
    assert oom.killed_for_memory(recent.before(3), None), "not counted often enough yet to tell"
    look(18)
    assert oom.killed_for_memory(recent.before(3), None) == "", "it was before all that is remembered"
    machine.write_text("oom_kill 5\n")
    look(30, 40, 50)
    assert oom.killed_for_memory(recent.before(3), None), "within the time that counts as recent"
    look(60)
    assert oom.killed_for_memory(recent.before(3), None) == ""
    assert recent.before(None) is None
