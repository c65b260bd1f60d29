"""How an image is to be run, from its configuration; and the command line of a program in it. Pure.

The backends of containers and of clusters call it: the first has the configuration from its engine, the
second from the image's registry. Both spell it alike.
"""

from collections.abc import Mapping
from typing import Any

from trainshed.core.jobs.launch import Launch
from trainshed.core.supplies.image import ImageConfig

PYTHON = "python3"  # the image's interpreter; the inits try `python` too


def image_config(
    name: str, config: Mapping[str, Any], *, architecture: str = "", size: int = 0
) -> ImageConfig:
    """`name` is its id; `config` is the part of it that says how to run it."""
    env = (str(entry).partition("=") for entry in config.get("Env") or ())
    return ImageConfig(
        id=name,
        entrypoint=_words(config.get("Entrypoint")),
        command=_words(config.get("Cmd")),
        env={variable: value for variable, _, value in env},
        workdir=str(config.get("WorkingDir") or ""),
        user=str(config.get("User") or ""),
        stop_signal=str(config.get("StopSignal") or ""),
        volumes=tuple(config.get("Volumes") or ()),
        labels=dict(config.get("Labels") or {}),
        architecture=architecture,
        size=size,
    )


def command_line(launch: Launch, image: ImageConfig, own: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A command replaces the image's entry point; either replaces its arguments.

    `own` stands before the arguments where the job has no command.
    """
    return (*launch.before, *_command_line(launch, image, own))


def _command_line(launch: Launch, image: ImageConfig, own: tuple[str, ...]) -> tuple[str, ...]:
    if launch.module:
        return (PYTHON, "-m", launch.module, *launch.args)
    if launch.command:
        return (*launch.command, *launch.args)
    if own:
        return (*own, *launch.args)
    return (*image.entrypoint, *(launch.args or image.command))


def _words(value: object) -> tuple[str, ...]:
    """Old images have a string where others have a list."""
    if isinstance(value, str):
        return ("/bin/sh", "-c", value)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
