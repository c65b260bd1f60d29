"""`trainshed completion`: the script that teaches a shell our commands, options and jobs."""

import click


@click.command("completion", short_help="Print the script that completes commands and jobs in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands and jobs in your shell.

    \b
    Example:
      source <(trainshed completion bash)        in ~/.bashrc, zsh likewise
      trainshed completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None, "the choice names click's own"
    root = click.get_current_context().find_root()
    click.echo(completion(root.command, {}, "trainshed", "_TRAINSHED_COMPLETE").source())
