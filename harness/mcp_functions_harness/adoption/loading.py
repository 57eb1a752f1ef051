"""Loads a server as its function will, and writes what it found out as one line of JSON. `trial` runs this file.

It runs in a process without the harness and without this machine's packages: sys.path is Python's own, and the folders
that the arguments name. The server's file is code of others: it may print, start a server or never end.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "mcp-functions adopt: "  # begins the line of the result
# The attributes of an MCPServer that hold its tools, prompts and resources, and their methods that list them. The
# library has no public names for them.
MANAGERS = {
    "_tool_manager": ("list_tools",),
    "_prompt_manager": ("list_prompts",),
    "_resource_manager": ("list_resources", "list_templates"),
}
SDK = ("mcp", "fastmcp", "mcp_types")


class Found(TypedDict, total=False):
    """The result: of a server that loads the first four members, of another one the last four."""

    refused: list[str]  # options that `adopt` refuses
    named: list[str]  # options of which it warns
    functions: list[tuple[str, int]]  # where the server's functions begin: path and line
    lists_nothing: bool  # whether the server has no tool, prompt or resource
    failure: str  # why the server could not be loaded
    missing: str  # the module that was not found
    is_of_sdk: bool  # whether something of `mcp` or `fastmcp` was not found
    variable: str  # the environment variable that was not set


def load(folder: str, module: str, variable: str) -> Found:
    """Load a server, which is a variable of a module in the function's folder, and examine it."""
    __import__(module)
    server = getattr(sys.modules[module], variable)
    from mcp_functions.adopt import adopt, library, options  # `mcp` may be missing
    from mcp_functions.handlers.catalog import UNLISTED_KEY

    low_level = library.find_low_level(server)
    outermost = library.find_outermost(server)
    notices = options.examine(outermost, low_level)
    refused = [notice.text for notice in notices if notice.fate == "refused"]
    handlers = [] if refused else adopt(server)
    return {
        "lists_nothing": not refused and all(handler.key == UNLISTED_KEY for handler in handlers),
        "refused": refused,
        "named": [notice.text for notice in notices if notice.fate != "refused"],
        "functions": sorted(set(_places(outermost, low_level, folder))),
    }


def _places(server: Any, low_level: Any, folder: str) -> Iterator[tuple[str, int]]:  # noqa: ANN401
    """Return where the functions of a server's tools, prompts and resources begin: file and line."""
    for function in _functions(server, low_level):
        code = getattr(_innermost(function), "__code__", None)
        if code and code.co_filename.startswith(folder):
            yield os.path.relpath(code.co_filename, folder), code.co_firstlineno


def _functions(server: Any, low_level: Any) -> Iterator[object]:  # noqa: ANN401
    """Return the objects that a server calls for its tools, prompts and resources."""
    from mcp_functions.adopt import library

    components = [each for part in library.fastmcp_servers(server) for each in library.components(part)]
    for manager, lists in MANAGERS.items():
        for name in lists:
            components += getattr(getattr(server, manager, None), name, list)()
    yield from (getattr(component, "fn", None) for component in components)
    for method in ("tools/call", "prompts/get", "resources/read"):
        entry = low_level.get_request_handler(method)
        yield entry and entry.handler


def _innermost(function: Any) -> Any:  # noqa: ANN401 - whatever a server calls
    """Return the author's function inside decorators, partial functions, methods and objects that are called."""
    if function is None:
        return None
    function = inspect.unwrap(function)
    if isinstance(function, partial):
        return _innermost(function.func)
    if inspect.isroutine(function):
        return getattr(function, "__func__", function)
    return type(function).__call__ if callable(function) else None


def describe(error: BaseException, folder: str) -> Found:
    """Describe why a server does not load."""
    lines = str(error).strip().splitlines()
    summary = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
    if frames:
        summary += f", in {os.path.relpath(frames[-1].filename, folder)}:{frames[-1].lineno}"
    return {
        "failure": summary.replace(f"{folder}/", ""),
        "missing": error.name or "" if isinstance(error, ModuleNotFoundError) else "",
        "is_of_sdk": _owner(error).partition(".")[0] in SDK,
        "variable": str(error.args[0]) if _is_missing_variable(error) else "",
    }


def _owner(error: BaseException) -> str:
    """Return the module that lacks what was imported or read; "" if the error is another one."""
    if isinstance(error, ImportError):
        return error.name or ""
    if isinstance(error, AttributeError):
        return str(getattr(error.obj, "__name__", type(error.obj).__module__))
    return ""


def _is_missing_variable(error: BaseException) -> bool:
    """Whether a server reads an environment variable that is not set."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return isinstance(error, KeyError) and any(frame.filename in (os.__file__, "<frozen os>") for frame in last)


if __name__ == "__main__":
    task, packages, module_name, variable_name = sys.argv[1:]
    sys.path[:0] = [task, packages]
    try:
        found = load(task, module_name, variable_name)
    except BaseException as raised:  # noqa: BLE001 - also SystemExit: the file may raise anything
        found = describe(raised, task)
    sys.stdout.write(f"\n{MARK}{json.dumps(found)}\n")
    sys.stdout.flush()
    os._exit(0)  # threads of the server's file must not keep the process alive
