"""Recognises the command by which Google's SDK runs a script it has staged, and restores it. For `pool`.

For an image it does not know, `CustomJob.from_local_script` sends a shell line instead of packages: upgrade
pip, install the staged package for the user, run its module. In an environment that jobs share, the first
step would change it for all jobs, and pip refuses the second. So `unwrap` splits the line into a package
and a command, and the package is installed like any other. Answers have the line as it was sent.
"""

from collections.abc import Sequence

from trainshed.core.supplies.package import faults

_SHELL = ("sh", "-c")
_BEGIN = "pip install --upgrade pip && pip3 install -q --user /gcs/"
_END = " && python3 -m "


def unwrap(command: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command without the installation, and the package. Any other command is returned unchanged."""
    sent = tuple(command)
    if len(sent) != 3 or sent[:2] != _SHELL or not sent[2].startswith(_BEGIN):
        return sent, ()
    package, and_then, module = sent[2].removeprefix(_BEGIN).partition(_END)
    uri = f"gs://{package}"
    # A package that is several words to a shell is left to the shell.
    if not and_then or not _is_word(package) or faults((uri,)):
        return sent, ()
    return (*_SHELL, f"python3 -m {module}"), (uri,)


def wrap(command: Sequence[str], packages: Sequence[str]) -> list[str]:
    """The command as it was sent."""
    if not packages:
        return list(command)
    package = packages[0].removeprefix("gs://")
    return [*_SHELL, f"{_BEGIN}{package} && {command[2]}"]


def _is_word(text: str) -> bool:
    return all(letter.isalnum() or letter in "/._-:+@%=" for letter in text)
