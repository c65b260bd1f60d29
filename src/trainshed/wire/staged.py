"""The command by which Google's SDK runs a script it has staged, told apart and put together again.

For an image it does not know, `CustomJob.from_local_script` sends no packages but a shell line: upgrade pip,
install the staged package as the user, run its module. In an environment that jobs share the first step would
change it for all of them, and the second is refused by pip. So the line is read for what it says, a package
and a command, and the package is installed as packages are. What is answered is the line as it was sent.
"""

from collections.abc import Sequence

from trainshed.core.package import faults

_SHELL = ("sh", "-c")
_BEGIN = "pip install --upgrade pip && pip3 install -q --user /gcs/"
_END = " && python3 -m "


def unwrap(command: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command without what installs its package, and that package; any other command as it is."""
    sent = tuple(command)
    if len(sent) != 3 or sent[:2] != _SHELL or not sent[2].startswith(_BEGIN):
        return sent, ()
    package, and_then, module = sent[2].removeprefix(_BEGIN).partition(_END)
    uri = f"gs://{package}"
    # What a shell would not take as one word is left to the shell.
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
