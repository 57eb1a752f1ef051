"""`serve`: runs every function of a project until Ctrl-C; a saved file takes effect, and each call writes a line."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from mcp_functions.local import banner
from mcp_functions.local.checks import imports
from mcp_functions.local.commands import options
from mcp_functions.local.harness import Harness
from mcp_functions.local.problems import Problem, not_installed
from mcp_functions.local.reloading import Reloader

try:
    from mcp_functions.local.terminal.outlets import JsonOutlet, TextOutlet
except ModuleNotFoundError as error:
    raise not_installed(error, "local") from error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PORT = 8000
LOOK_SECONDS = 0.1  # pause between two looks at the project's files


class HarnessOptions(TypedDict):
    """The options that the harness takes as they are."""

    port: int
    auth: Literal["none", "jwt", "oauth"]
    runtime: bool


@click.command("serve")
@options.functions
@options.runtime
@click.option("--port", type=int, default=PORT, metavar="N", help=f"Default: {PORT}; 0: any.")
@click.option(
    "--auth",
    type=click.Choice(["none", "jwt", "oauth"]),
    default="none",
    help="jwt: require an access token, and run an issuer. oauth: with the sign-in front before it. Default: none.",
)
@click.option("--no-reuse", is_flag=True, help="With --runtime, a process for every invocation.")
@click.option("--show-answers", is_flag=True, help="A round's line has the user's answers.")
@click.option("--log", type=click.Choice(["text", "json"]), default="text", help="json: lines as on Lambda.")
def command(
    functions: Path, *, no_reuse: bool, show_answers: bool, log: str, **for_harness: Unpack[HarnessOptions]
) -> None:
    """Serve every function until Ctrl-C."""
    outlet = JsonOutlet(sys.stdout) if log == "json" else TextOutlet(sys.stdout, show_answers=show_answers)
    harness = Harness(
        functions,
        reuse=not no_reuse,
        debug=options.is_debug(),
        on_log=outlet.log,
        on_exchange=outlet.exchange,
        on_progress=outlet.progress,
        reports=True,
        **for_harness,
    )
    with options.until_stopped() as stopped, outlet.output(), harness:
        outlet.use_key(harness.key_arn)
        reloader = Reloader(harness)
        refreshed = list(reloader.refresh_catalog())
        outlet.say(banner.text(harness.url, harness.functions, harness.issuer, harness.auth))
        told = _say_new(outlet.say, [*refreshed, *_not_on_lambda(functions)], set())
        while not stopped():
            time.sleep(LOOK_SECONDS)
            changes = list(reloader.changes())
            for line in changes:
                outlet.say(line)
            if changes:
                told = _say_new(outlet.say, _not_on_lambda(functions), told)


def _say_new(say: Callable[[str], None], lines: list[str], told: set[str]) -> set[str]:
    """Write the lines that are new since the last time; return all of them, for the next time."""
    for line in lines:
        if line not in told:
            say(line)
    return set(lines)


def _not_on_lambda(directory: Path) -> list[str]:
    """List imports that work here and fail on Lambda."""
    with contextlib.suppress(Problem, SyntaxError, OSError):  # the reload reports a broken file
        return imports.missing_on_lambda(directory)
    return []
