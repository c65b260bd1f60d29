"""A command that hands on what stands behind `--`: those words are the program's, and no flags of ours."""

import click

_KEY = "trainshed.dialects.ai_platform.cli.behind"


class Handing(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_KEY] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGS...]"]


def handed() -> list[str] | None:
    """The words; None where there was no `--`."""
    return click.get_current_context().meta.get(_KEY)
