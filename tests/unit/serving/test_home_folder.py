"""The home and its folders are closed to other users; what others put there is left alone."""

import os
from pathlib import Path
from stat import S_IMODE

import pytest

from trainshed.core.errors import Unavailable
from trainshed.serving.home_folder import close_home, make_home


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    return home


def test_a_home_that_was_open_is_closed_with_its_folders(home: Path) -> None:
    for name in ("logs", "buckets", "notices", "hatch"):
        (home / name).mkdir()
        (home / name).chmod(0o755)
    of_teams = ("accounts.json", "token-uses.json", "ended-sessions.json", "shares.json")
    for name in ("token", "trainshed.db-wal", "clock.json", ".gitignore", "trainshed.toml", *of_teams):
        (home / name).touch()
    close_home(home)
    assert [mode(home / name) for name in (".", "logs", "buckets", "notices")] == [0o700] * 4
    assert mode(home / "hatch") == 0o755  # mounted as it is by containers of any user


def test_a_folder_with_files_of_others_stays_open_and_ours_in_it_are_closed(home: Path) -> None:
    for name in ("logs", "photos"):
        (home / name).mkdir()
        (home / name).chmod(0o755)
    close_home(home)
    assert mode(home) == mode(home / "photos") == 0o755
    assert mode(home / "logs") == 0o700


def test_a_folder_behind_a_link_is_left_alone(home: Path, tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / "large disk").chmod(0o755)
    (home / "buckets").symlink_to(tmp_path / "large disk")
    close_home(home)
    assert mode(tmp_path / "large disk") == 0o755
    assert mode(home) == 0o700


def test_a_folder_that_cannot_be_closed_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "logs").mkdir()
    (home / "logs").chmod(0o755)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, os.strerror(1))

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(Unavailable, match=r"logs \(mode 755\).*Operation not permitted.*chmod 700"):
        close_home(home)


def test_a_new_home_is_closed(tmp_path: Path) -> None:
    make_home(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o700


def test_jobs_of_other_users_come_through_the_home_and_see_no_names(home: Path) -> None:
    for name in ("logs", "run", "hatch"):
        (home / name).mkdir()
        (home / name).chmod(0o755)
    for name in ("token", "trainshed.toml", ".gitignore"):
        (home / name).touch(0o644)
    close_home(home, ways=True)
    ways = (".", "run", "runtimes", "tls", "metrics", "metrics/.reports")
    assert [mode(home / name) for name in ways] == [0o711] * len(ways)
    assert [mode(home / name) for name in ("logs", "token", "trainshed.toml")] == [0o700, 0o600, 0o600]
    close_home(home)
    assert [mode(home / name) for name in ways[:-1]] == [0o700] * len(ways[:-1])


def test_what_is_not_the_servers_keeps_a_home_from_being_opened_for_jobs(home: Path) -> None:
    (home / "photos").mkdir()
    (home / "photos").chmod(0o755)
    home.chmod(0o700)
    with pytest.raises(Unavailable, match=r"photos \(mode 755\), which is not the server's.*chmod go-rwx"):
        close_home(home, ways=True)
    assert mode(home) == 0o700
