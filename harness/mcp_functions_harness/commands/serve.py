"""`serve`: runs the functions of a project until Ctrl-C. Saved files are loaded, and each call writes a line."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, Unpack

import click

from mcp_functions_harness import banner, skills
from mcp_functions_harness.authorization import LocalAuthMode
from mcp_functions_harness.checks import imports
from mcp_functions_harness.commands import options
from mcp_functions_harness.harness import Harness
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.reloading import Reloader

PORT = 8000
LOOK_SECONDS = 0.1  # pause between two looks at the project's files


class HarnessOptions(TypedDict):
    """The options that the harness takes as they are."""

    port: int
    auth: LocalAuthMode
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
    outputs = options.import_module("terminal.outputs", extra="local")
    is_json = log == "json"
    output = outputs.JsonOutput(sys.stdout) if is_json else outputs.TextOutput(sys.stdout, show_answers=show_answers)
    debug = options.is_debug()
    harness = Harness(
        functions, reuse=not no_reuse, debug=debug, on_log=output.write_log, watcher=output, **for_harness
    )
    with options.until_stopped() as is_stopped, output.capture(), harness:
        _serve(harness, output.write, is_stopped)


def _serve(harness: Harness, write: Callable[[str], None], is_stopped: Callable[[], bool]) -> None:
    """Write where the server is; then load saved files, and write what an author has to know, until the end."""
    lines: list[str] = []
    reloader = Reloader(harness, report=lines.append)
    reloader.refresh_catalog()
    write(banner.text(harness.url, harness.functions, harness.issuer, harness.auth, skills.uris(harness.directory)))
    warnings = _missing_on_lambda(harness.directory)
    lines += warnings
    while not is_stopped():
        for line in lines:
            write(line)
        lines.clear()
        time.sleep(LOOK_SECONDS)
        if reloader.reload():
            old_warnings = warnings
            warnings = _missing_on_lambda(harness.directory)
            lines += [line for line in warnings if line not in old_warnings]


def _missing_on_lambda(directory: Path) -> list[str]:
    try:
        return imports.missing_on_lambda(directory)
    except (Problem, SyntaxError, OSError):  # a broken file, which the reloader reports
        return []
