"""Answers one event in a new process: `python -m mcp_functions.testing` reads the order from stdin."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.testing import Context

if TYPE_CHECKING:
    from types import ModuleType


def main() -> None:
    """Import the function, answer the event, and write the response to stdout."""
    order: dict[str, Any] = json.load(sys.stdin)
    # The function's folder comes first, as on Lambda; then the folders from which the test imports.
    sys.path[:] = [str(Path(order["file"]).parent), *order["path"]]
    with redirect_stdout(sys.stderr):
        handler = unwrap(getattr(_import(order["module"], order["file"]), order["variable"]))
        container = handler.fresh(now=lambda: handler.now() + order["ahead"])
        response = container(order["event"], Context(order["name"], order["remaining"]))
    json.dump(response, sys.stdout)


def _import(name: str, file: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        message = f"{file} is no module"
        raise ImportError(message)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


main()
