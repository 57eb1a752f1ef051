"""The command `mcp-functions`, also `python -m mcp_functions`.

A function that runs a command returns its exit code. An error that the user can correct is one line on stderr, and exit
code 2.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from mcp_functions.attack import cli as attack_cli
from mcp_functions.local import auth as auth_block
from mcp_functions.local import cli, template
from mcp_functions.local.adoption.command import adopt
from mcp_functions.local.problems import Problem
from mcp_functions.settings import AUTH_MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_functions.local.verification import Choices
    from mcp_functions.settings import AuthMode

NAME = "mcp-functions"
FORWARDED = {
    "block": "Print what template.yaml needs for a function.",
    "catalog": "Write functions/mcp/catalog.json.",
    "demo": "Watch the official client hold a conversation.",
    "init": "Write a new project.",
    "kms": "Serve KMS and DynamoDB, for functions in containers.",
    "new": "Add a function to the project in this folder.",
    "next": "Fill a response's requestState into the next event.",
    "open": "Explain why a server refuses a requestState.",
    "serve": "Serve every function until Ctrl-C.",
}


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: its arguments, without the program's name; None: the process's own.
    """
    try:
        code = main.main(argv, prog_name=NAME, standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else NAME
        return _problem(f"{error.format_message()} See {path} --help")
    except (click.ClickException, attack_cli.UsageError, Problem) as error:
        return _problem(str(error))
    except (click.Abort, KeyboardInterrupt):
        return cli.INTERRUPTED
    return code if isinstance(code, int) else 0


def _problem(text: str) -> int:
    sys.stderr.write(f"{NAME}: {text}\n")
    return cli.USAGE


@click.group(no_args_is_help=False)
def main() -> None:
    """MCP servers as serverless functions."""


@main.command()
@click.argument("target", metavar="STACK-OR-URL")
@click.option("--functions", type=click.Path(path_type=Path), default=Path("functions"), help="Default: functions.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="A tool that may be called. May be repeated.")
@click.option("--arguments", multiple=True, metavar="JSON", help="Of each --tool, in their order.")
@click.option("--answers", default="{}", metavar="JSON", help='By key: a form\'s content, "decline" or "cancel".')
@click.option("--token", envvar="MCP_FUNCTIONS_TOKEN", metavar="TOKEN", help="Default: MCP_FUNCTIONS_TOKEN.")
@click.option("--auth", type=click.Choice(list(AUTH_MODES)), help="The mode that is meant.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Whose pages may call. May be repeated.")
@click.option("--region", metavar="R", help="Default: as the AWS CLI decides.")
@click.option("--profile", metavar="P", help="Default: as the AWS CLI decides.")
@click.option("--seconds", type=click.FloatRange(min=0), default=60, help="For a task, or a line of the log.")
def verify(
    target: str,
    tools: Sequence[str],
    arguments: Sequence[str],
    answers: str,
    seconds: float,
    **given: Unpack[Choices],
) -> int:
    """Check a server that was just deployed, one line a check.

    Unless --tool names tools, only resources, prompts and tools with readOnlyHint are called.
    """
    from mcp_functions.local import verification  # noqa: PLC0415 - only this command needs boto3

    options = verification.Options(
        named=attack_cli.named_calls(tools, arguments),
        answers=attack_cli.json_object("--answers", answers),
        patience=verification.Patience(seconds),
        **given,
    )
    outcomes = set[str]()
    for line in verification.verify(target, options):
        outcomes.add(line.outcome)
        click.echo(str(line))
    return 1 if "FAILED" in outcomes else 0


@main.command()
@click.argument("mode", type=click.Choice(list(AUTH_MODES)))
def auth(mode: AuthMode) -> None:
    """Write into template.yaml who may call: who signs (iam), has a token (jwt) or signed in (oauth), or all (none)."""
    click.echo(auth_block.write(Path(template.FILE), mode))


@main.command("set")
@click.argument("environment", metavar="ENV")
@click.argument("words", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="Change the deployed stack too, without a build.")
def set_parameters(environment: str, words: Sequence[str], *, now: bool) -> None:
    """Write parameters of an environment into samconfig.toml.

    Each later deployment finds them there. NAME= is the default of template.yaml.
    """
    from mcp_functions.local import parameter_changes  # noqa: PLC0415 - only this command needs boto3

    for line in parameter_changes.change(Path(), environment, words, now=now):
        click.echo(line)


def _add(name: str, text: str, forward: Callable[[Sequence[str]], int]) -> None:
    """Add a command whose words another parser reads."""
    main.add_command(
        click.Command(
            name,
            callback=forward,
            params=[click.Argument(["argv"], nargs=-1, type=click.UNPROCESSED)],
            context_settings={"ignore_unknown_options": True},
            add_help_option=False,
            help=text,
        )
    )


def _forward(name: str) -> Callable[[Sequence[str]], int]:
    return lambda argv: cli.main([name, *argv], prog=NAME)


main.add_command(adopt)
_add("attack", "Attack a server of your own as a hostile client would.", attack_cli.main)
for _name, _text in FORWARDED.items():
    _add(_name, _text, _forward(_name))
