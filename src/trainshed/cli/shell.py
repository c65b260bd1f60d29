"""`trainshed shell`: a terminal, or a command, inside a running replica."""

import click

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import job_argument, targeted
from trainshed.client import Client, Target

PROTOCOL = "trainshed.shell"
_COMMAND = "command behind --"


class Shell(click.Command):
    """What stands behind `--` is the command, whether a replica is named before it or not."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words, command = args, list[str]()
        if "--" in args:
            words, command = args[: args.index("--")], args[args.index("--") + 1 :]
        ctx.meta[_COMMAND] = command
        return super().parse_args(ctx, words)


@click.command(
    "shell",
    cls=Shell,
    short_help="Open a shell inside a running replica.",
)
@job_argument
@click.argument("replica", required=False)
@click.argument("more", metavar="[-- COMMAND...]", nargs=-1)
@targeted
def command(target: Target, job: str, replica: str | None, more: tuple[str, ...]) -> int:
    """Open a shell inside a running replica.

    With -- and a command behind it, run that there instead. It has the files, the environment, the network
    and the limits of the replica's own program, and is hung up on when that ends. Without REPLICA it is
    workerpool0-0. Where this is no terminal, what is read from stdin and written to stdout passes as it is.
    The exit code is that of the shell or the command.

    \b
    Example:
      trainshed shell digits
      trainshed shell digits workerpool1-0 -- nvidia-smi
      trainshed shell digits -- tar cf - checkpoints >checkpoints.tar
    """
    import sys

    from trainshed.cli.find import find
    from trainshed.cli.terminal import converse, screen
    from trainshed.client.websocket import WebSocket

    if more:
        words = " ".join((replica or "", *more))
        raise Misuse(f"a command stands behind --, as in: trainshed shell {job} -- {words}")
    words = click.get_current_context().meta[_COMMAND]
    size = screen() if sys.stdin.isatty() and sys.stdout.isatty() else None
    with Client.of(target) as client:
        body = {"task": replica or "", "command": words, "screen": size}
        ticket = client.ask("POST", f"/v1/{find(client, job, alive=True)['name']}:shell", body)
    socket = WebSocket(target.url, str(ticket["path"]), (PROTOCOL, str(ticket["ticket"])), target.ca)
    try:
        return converse(socket, terminal=size is not None)
    except OSError as error:
        raise CommandFailed(
            f"the connection broke off ({error.strerror or error}): the shell was hung up"
        ) from error
    finally:
        socket.close()
