"""`verify`: whether a server that was just deployed works."""

from collections.abc import Sequence
from typing import Unpack

import click

from mcp_functions.attack.cli import json_object, named_calls
from mcp_functions.local.commands import options
from mcp_functions.local.verification import verify
from mcp_functions.local.verification.options import Choices, Options
from mcp_functions.settings import AUTH_MODES


@click.command("verify")
@click.argument("target", metavar="STACK-OR-URL")
@options.functions
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="A tool that may be called. May be repeated.")
@click.option("--arguments", multiple=True, metavar="JSON", help="Of each --tool, in their order.")
@click.option("--answers", default="{}", metavar="JSON", help='By key: a form\'s content, "decline" or "cancel".')
@click.option("--token", envvar="MCP_FUNCTIONS_TOKEN", metavar="TOKEN", help="Default: MCP_FUNCTIONS_TOKEN.")
@click.option("--auth", type=click.Choice(list(AUTH_MODES)), help="The mode that is meant.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Whose pages may call. May be repeated.")
@click.option("--region", metavar="R", help="Default: as the AWS CLI decides.")
@click.option("--profile", metavar="P", help="Default: as the AWS CLI decides.")
@click.option("--seconds", type=click.FloatRange(min=0), default=60, help="For a task, or a line of the log.")
def command(
    target: str, tools: Sequence[str], arguments: Sequence[str], answers: str, **choices: Unpack[Choices]
) -> int:
    """Check a server that was just deployed, one line a check.

    Unless --tool names tools, only resources, prompts and tools with readOnlyHint are called.
    """
    settings: Options = {
        "named_tools": named_calls(tools, arguments),
        "answers": json_object("--answers", answers),
        **choices,
    }
    outcomes: set[str] = set()
    for line in verify(target, settings):
        outcomes.add(line.outcome)
        click.echo(str(line))
    return 1 if "FAILED" in outcomes else 0
