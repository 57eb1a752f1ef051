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
    from mcp_functions.handlers.hooks import Call
    from mcp_functions.oauth.function import serve_oauth
    from mcp_functions.protocol.content import (
        Audio,
        CallToolResult,
        EmbeddedResource,
        Image,
        PromptMessage,
        ResourceContents,
        ResourceLink,
        Text,
    )
    from mcp_functions.protocol.errors import NotAnswered, ToolError
    from mcp_functions.rounds.asking import InputRequest
    from mcp_functions.rounds.audit import AuditRecord
    from mcp_functions.rounds.capabilities import Ask, Caller, Shared
    from mcp_functions.rounds.elicitation import Cancelled, Declined, Elicit, ElicitRequest, Question
    from mcp_functions.rounds.low_level import InputRequiredResult, InputResponses, RequestState
    from mcp_functions.rounds.notifications import Log, Progress
    from mcp_functions.rounds.roots import ListRoots, ListRootsRequest, RootsQuestion
    from mcp_functions.rounds.sampling import CreateMessageRequest, Sample, SampleQuestion
    from mcp_functions.rounds.steps import Step
    from mcp_functions.schemas.annotations import Between, Format, Length, Title, Titles
    from mcp_functions.schemas.arguments import Header
    from mcp_functions.schemas.json_types import Number
    from mcp_functions.serving import serve

__all__ = [
    "Ask", "Audio", "AuditRecord", "Between", "Call", "CallToolResult", "Caller", "Cancelled", "CreateMessageRequest",
    "Declined", "Elicit", "ElicitRequest", "EmbeddedResource", "Format", "Header", "Image", "InputRequest",
    "InputRequiredResult", "InputResponses", "Length", "ListRoots", "ListRootsRequest", "Log", "NotAnswered",
    "Number", "Progress", "PromptMessage", "Question", "RequestState", "ResourceContents", "ResourceLink",
    "RootsQuestion", "Sample", "SampleQuestion", "Shared", "Step", "Text", "Title", "Titles", "ToolError", "prompt",
    "resource", "serve", "serve_catalog", "serve_oauth", "tool",
]  # fmt: skip
# Module -> the names that it defines.
_NAMES_OF_MODULE = {
    "front_door": "serve_catalog",
    "handlers.decorators": "prompt resource tool",
    "handlers.hooks": "Call",
    "oauth.function": "serve_oauth",
    "protocol.content": "Audio CallToolResult EmbeddedResource Image PromptMessage ResourceContents ResourceLink Text",
    "protocol.errors": "NotAnswered ToolError",
    "rounds.asking": "InputRequest",
    "rounds.audit": "AuditRecord",
    "rounds.capabilities": "Ask Caller Shared",
    "rounds.elicitation": "Cancelled Declined Elicit ElicitRequest Question",
    "rounds.low_level": "InputRequiredResult InputResponses RequestState",
    "rounds.notifications": "Log Progress",
    "rounds.roots": "ListRoots ListRootsRequest RootsQuestion",
    "rounds.sampling": "CreateMessageRequest Sample SampleQuestion",
    "rounds.steps": "Step",
    "schemas.annotations": "Between Format Length Title Titles",
    "schemas.arguments": "Header",
    "schemas.json_types": "Number",
    "serving": "serve",
}


def lazy_names(package: str, names_of_module: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a package (PEP 562), which imports a name at its first use.

    Args:
        package: the name of the package.
        names_of_module: modules, as a relative import names them, and the names that each defines, with blanks between.
    """
    module_of = {name: module for module, names in names_of_module.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in module_of:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        module = import_module(f".{module_of[name]}", package)
        value = getattr(module, name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return get


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept every misspelt name
    __getattr__ = lazy_names(__name__, _NAMES_OF_MODULE)
