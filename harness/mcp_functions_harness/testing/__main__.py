"""Answers one event in a new process: `python -m mcp_functions_harness.testing`.

`containers.answer_in_process` starts it.

    stdin    JSON: where the handler is (`module`, `file`, `variable`, `path`), the `event`, the `name` of the function,
             its `remaining` milliseconds, and the seconds by which its clock is `ahead`
    stdout   the response as JSON
    stderr   what the function printed, and tracebacks
"""

import json
import sys
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from inspect import unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from mcp_functions.observability import Notes, listener
from mcp_functions_harness.lambdas.failures import whole_traceback
from mcp_functions_harness.testing import Context


def main() -> None:
    """Import the function, answer the event, and write the response to stdout."""
    invocation: dict[str, Any] = json.load(sys.stdin)
    # The function's folder comes first, as on Lambda; then the folders from which the test imports.
    sys.path[:] = [str(Path(invocation["file"]).parent), *invocation["path"]]
    listener.set(_show_raised)
    with redirect_stdout(sys.stderr):
        module = _import(invocation["module"], invocation["file"])
        handler = unwrap(getattr(module, invocation["variable"]))  # without decorators around it
        container = handler.fresh(now=lambda: handler.now() + invocation["ahead"])
        response = container(invocation["event"], Context(invocation["name"], invocation["remaining"]))
    json.dump(response, sys.stdout)


def _show_raised(notes: Notes) -> None:
    if notes.raised:
        sys.stderr.write(whole_traceback(notes.raised))


def _import(name: str, file: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


main()
