"""`verify`: whether a server that was just deployed works."""

from collections.abc import Sequence
from typing import Unpack

import click

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions.settings import AUTH_MODES
from mcp_functions_harness.commands import options
from mcp_functions_harness.loopback import read_object
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.verification import verify
from mcp_functions_harness.verification.options import Choices, Options


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
        "named_tools": _named_calls(tools, arguments),
        "answers": _json_object("--answers", answers),
        **choices,
    }
    outcomes: set[str] = set()
    for line in verify(target, settings):
        outcomes.add(line.outcome)
        click.echo(str(line))
    return 1 if "FAILED" in outcomes else 0


def _named_calls(tools: Sequence[str], arguments: Sequence[str]) -> list[tuple[str, JSONObject]]:
    """Return each tool with its arguments; the last tools may have none."""
    if len(arguments) > len(tools):
        raise Problem("--arguments belongs to a --tool")
    texts = [*arguments, *["{}"] * (len(tools) - len(arguments))]
    return [(name, _json_object("--arguments", text)) for name, text in zip(tools, texts, strict=True)]


def _json_object(option: str, text: str) -> JSONObject:
    value = read_object(text)
    if value is None:
        raise Problem(f"{option} must be a JSON object, not {text!r}")
    return value
