"""MCP servers as serverless functions: the names that an author imports.

    from mcp_functions import serve, tool

A name is imported from its module when it is first used, so that a cold start loads only what a function needs. Type
checkers read the imports under TYPE_CHECKING instead.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.front_door import serve_catalog
    from mcp_functions.handlers.decorators import prompt, resource, tool
    from mcp_functions.oauth.function import serve_oauth
    from mcp_functions.protocol.errors import NotAnswered, ToolError
    from mcp_functions.rounds.capabilities import Ask, Caller, Shared
    from mcp_functions.rounds.elicitation import Cancelled, Declined, Elicit, Question
    from mcp_functions.rounds.notifications import Log, Progress
    from mcp_functions.rounds.roots import ListRoots, RootsQuestion
    from mcp_functions.rounds.sampling import Sample, SampleQuestion
    from mcp_functions.rounds.steps import Step
    from mcp_functions.serving import serve

__all__ = [
    "Ask", "Caller", "Cancelled", "Declined", "Elicit", "ListRoots", "Log", "NotAnswered", "Progress", "Question",
    "RootsQuestion", "Sample", "SampleQuestion", "Shared", "Step", "ToolError", "prompt", "resource", "serve",
    "serve_catalog", "serve_oauth", "tool",
]  # fmt: skip
# Module -> the names that it defines.
_NAMES_OF_MODULE = {
    "front_door": "serve_catalog",
    "handlers.decorators": "prompt resource tool",
    "oauth.function": "serve_oauth",
    "protocol.errors": "NotAnswered ToolError",
    "rounds.capabilities": "Ask Caller Shared",
    "rounds.elicitation": "Cancelled Declined Elicit Question",
    "rounds.notifications": "Log Progress",
    "rounds.roots": "ListRoots RootsQuestion",
    "rounds.sampling": "Sample SampleQuestion",
    "rounds.steps": "Step",
    "serving": "serve",
}
# Module -> the names that an author imports from it, and may look for here.
_NAMES_ELSEWHERE = {
    "annotated": "Between Format Header Length Number Title Titles",
    "content": "Audio CallToolResult EmbeddedResource Image PromptMessage ResourceContents ResourceLink Text",
    "hooks": "AuditRecord Call",
    "low_level": "CreateMessageRequest ElicitRequest InputRequest InputRequiredResult InputResponses ListRootsRequest "
    "RequestState",
}


def lazy_names(
    package: str, names_of_module: Mapping[str, str], names_elsewhere: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Make the `__getattr__` of a package or a module (PEP 562), which imports a name at its first use.

    Args:
        package: the name of the package.
        names_of_module: modules, as a relative import names them, and the names that each defines, with blanks between.
        names_elsewhere: modules and names in the same form; an error names the module that a name is imported from.
    """
    module_of = {name: module for module, names in names_of_module.items() for name in names.split()}
    home_of = {name: module for module, names in (names_elsewhere or {}).items() for name in names.split()}

    def get(name: str) -> object:
        if name in home_of:
            home = f"{package}.{home_of[name]}"
            message = f"{name} is in {home}: from {home} import {name}"
            raise ImportError(message)  # `from … import` would replace the text of an AttributeError
        if name not in module_of:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        value = getattr(import_module(f".{module_of[name]}", package), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return get


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept every misspelt name
    __getattr__ = lazy_names(__name__, _NAMES_OF_MODULE, _NAMES_ELSEWHERE)
