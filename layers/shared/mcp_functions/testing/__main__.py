"""One event in a process of its own: `python -m mcp_functions.testing`, asked on stdin, answering on stdout."""

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
    """Load the function, and answer."""
    asked: dict[str, Any] = json.load(sys.stdin)
    # as on Lambda, the function's folder comes first; then whatever the test could import
    sys.path[:] = [str(Path(asked["file"]).parent), *asked["path"]]
    with redirect_stdout(sys.stderr):
        handler = unwrap(getattr(_load(asked["module"], asked["file"]), asked["variable"]))
        late = handler.fresh(now=lambda: handler.now() + asked["later"])
        response = late(asked["event"], Context(asked["name"], asked["remaining"]))
    json.dump(response, sys.stdout)


def _load(name: str, file: str) -> ModuleType:
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        message = f"{file} is no module"
        raise ImportError(message)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


main()
