"""`serve`: every function of a project until Ctrl-C; a save takes effect, and each round is a line."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mcp_functions.local import banner
from mcp_functions.local.checks import imports
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

LOOK_SECONDS = 0.15  # between two looks at the files


@dataclass(frozen=True, kw_only=True)
class Options:
    """The words of the command.

    Attributes:
        functions: the directory of functions.
        port: for clients; 0 for any free port.
        auth: who may call.
        runtime: run functions as processes of the real Lambda runtime.
        reuse: with `runtime`, a process takes a second invocation.
        debug: tracebacks include the toolkit's frames.
        log: "text" for a person, or "json" for lines as on Lambda.
        show_answers: the line of a round has the client's answers.
    """

    functions: Path
    port: int
    auth: Literal["none", "jwt", "oauth"] = "none"
    runtime: bool = False
    reuse: bool = True
    debug: bool = False
    log: Literal["text", "json"] = "text"
    show_answers: bool = False


def run(options: Options, stopped: Callable[[], bool]) -> None:
    """Serve until `stopped`.

    Raises:
        Problem: the user has to correct something first.
    """
    outlet = (
        JsonOutlet(sys.stdout) if options.log == "json" else TextOutlet(sys.stdout, show_answers=options.show_answers)
    )
    harness = Harness(
        options.functions,
        port=options.port,
        auth=options.auth,
        runtime=options.runtime,
        reuse=options.reuse,
        debug=options.debug,
        on_log=outlet.log,
        on_exchange=outlet.exchange,
        on_progress=outlet.progress,
        reports=True,
    )
    with outlet.output(), harness:
        outlet.opens_states_with(harness.key_arn)
        reloader = Reloader(harness)
        refreshed = list(reloader.refresh_catalog())
        outlet.say(banner.text(harness.url, harness.functions, harness.issuer, options.auth))
        told = _tell_new(outlet.say, [*refreshed, *_not_on_lambda(options.functions)], set())
        while not stopped():
            time.sleep(LOOK_SECONDS)
            changes = list(reloader.changes())
            for line in changes:
                outlet.say(line)
            if changes:
                told = _tell_new(outlet.say, _not_on_lambda(options.functions), told)


def _tell_new(say: Callable[[str], None], lines: list[str], told: set[str]) -> set[str]:
    for line in lines:
        if line not in told:
            say(line)
    return set(lines)


def _not_on_lambda(directory: Path) -> list[str]:
    with contextlib.suppress(Problem, SyntaxError, OSError):  # a reload tells of a broken file
        return imports.missing_on_lambda(directory)
    return []
