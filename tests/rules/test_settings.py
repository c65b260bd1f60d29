"""The guide's table of settings is the table itself: what a person reads there is what the server does."""

from pathlib import Path

from trainshed.settings.table import SETTINGS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "server.md"


def test_every_setting_is_in_the_guide_with_its_default_and_its_help() -> None:
    lines = GUIDE.read_text().splitlines()
    wanted = [f"| `{row.name}` | {row.default_words} | {row.help} |" for row in SETTINGS.values()]
    missing = [line for line in wanted if line not in lines]
    assert not missing, "put these lines into the table of docs/guide/server.md:\n" + "\n".join(missing)


def test_no_two_settings_share_a_flag_or_a_variable() -> None:
    flags = [
        word for row in SETTINGS.values() for word in {row.flag, row.negative if row.is_switch else row.flag}
    ]
    variables = [row.variable for row in SETTINGS.values()]
    taken = {
        "TRAINSHED_URL",
        "TRAINSHED_TOKEN",
        "TRAINSHED_TOKEN_FILE",
        "TRAINSHED_CA",
        "TRAINSHED_PROJECT",
        "TRAINSHED_LOCATION",
    }
    assert len(set(flags)) == len(flags)
    assert len(set(variables)) == len(variables)
    assert not taken & set(variables)
