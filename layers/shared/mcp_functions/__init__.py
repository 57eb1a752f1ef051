"""MCP servers as serverless functions: the words an author needs.

`from mcp_functions import Elicit, serve, tool` imports just what it names: a function that never asks does not load
what asking needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_functions.front_door import serve_catalog as serve_catalog
    from mcp_functions.handlers.decorators import prompt as prompt
    from mcp_functions.handlers.decorators import resource as resource
    from mcp_functions.handlers.decorators import tool as tool
    from mcp_functions.protocol.content import Audio as Audio
    from mcp_functions.protocol.content import CallToolResult as CallToolResult
    from mcp_functions.protocol.content import EmbeddedResource as EmbeddedResource
    from mcp_functions.protocol.content import Image as Image
    from mcp_functions.protocol.content import PromptMessage as PromptMessage
    from mcp_functions.protocol.content import ResourceContents as ResourceContents
    from mcp_functions.protocol.content import ResourceLink as ResourceLink
    from mcp_functions.protocol.content import Text as Text
    from mcp_functions.protocol.errors import NotAnswered as NotAnswered
    from mcp_functions.protocol.errors import ToolError as ToolError
    from mcp_functions.rounds.capabilities import Caller as Caller
    from mcp_functions.rounds.elicitation import Ask as Ask
    from mcp_functions.rounds.elicitation import Cancelled as Cancelled
    from mcp_functions.rounds.elicitation import Declined as Declined
    from mcp_functions.rounds.elicitation import Elicit as Elicit
    from mcp_functions.rounds.elicitation import ListRoots as ListRoots
    from mcp_functions.rounds.elicitation import Question as Question
    from mcp_functions.rounds.elicitation import RootsQuestion as RootsQuestion
    from mcp_functions.rounds.elicitation import Sample as Sample
    from mcp_functions.rounds.elicitation import SampleQuestion as SampleQuestion
    from mcp_functions.rounds.input_requests import CreateMessageRequest as CreateMessageRequest
    from mcp_functions.rounds.input_requests import ElicitRequest as ElicitRequest
    from mcp_functions.rounds.input_requests import InputRequest as InputRequest
    from mcp_functions.rounds.input_requests import InputRequiredResult as InputRequiredResult
    from mcp_functions.rounds.input_requests import ListRootsRequest as ListRootsRequest
    from mcp_functions.rounds.input_responses import InputResponses as InputResponses
    from mcp_functions.rounds.input_responses import RequestState as RequestState
    from mcp_functions.rounds.notifications import Log as Log
    from mcp_functions.rounds.notifications import Progress as Progress
    from mcp_functions.rounds.round import AuditRecord as AuditRecord
    from mcp_functions.rounds.steps import Step as Step
    from mcp_functions.schemas.annotations import Format as Format
    from mcp_functions.schemas.annotations import Title as Title
    from mcp_functions.schemas.annotations import Titles as Titles
    from mcp_functions.schemas.json_types import Number as Number
    from mcp_functions.schemas.limits import Between as Between
    from mcp_functions.schemas.limits import Length as Length
    from mcp_functions.schemas.parameters import Header as Header
    from mcp_functions.serving import serve as serve

WORDS = {
    "schemas.annotations": ("Format", "Title", "Titles"),
    "rounds.elicitation": (
        "Ask",
        "Cancelled",
        "Declined",
        "Elicit",
        "ListRoots",
        "Question",
        "RootsQuestion",
        "Sample",
        "SampleQuestion",
    ),
    "handlers.decorators": ("prompt", "resource", "tool"),
    "rounds.capabilities": ("Caller",),
    "protocol.content": (
        "Audio",
        "CallToolResult",
        "EmbeddedResource",
        "Image",
        "PromptMessage",
        "ResourceContents",
        "ResourceLink",
        "Text",
    ),
    "protocol.errors": ("NotAnswered", "ToolError"),
    "front_door": ("serve_catalog",),
    "rounds.input_requests": (
        "CreateMessageRequest",
        "ElicitRequest",
        "InputRequest",
        "InputRequiredResult",
        "ListRootsRequest",
    ),
    "schemas.json_types": ("Number",),
    "schemas.limits": ("Between", "Length"),
    "schemas.parameters": ("Header",),
    "rounds.input_responses": ("InputResponses", "RequestState"),
    "rounds.notifications": ("Log", "Progress"),
    "rounds.round": ("AuditRecord",),
    "serving": ("serve",),
    "rounds.steps": ("Step",),
}
_HOME = {word: module for module, words in WORDS.items() for word in words}
__all__ = sorted(_HOME)  # noqa: PLE0605 - a list of the words above

if not TYPE_CHECKING:  # which would take every misspelt word for an object

    def __getattr__(word: str) -> object:
        """Import a word's module when the word is first used."""
        if word not in _HOME:
            message = f"module {__name__!r} has no attribute {word!r}"
            raise AttributeError(message)
        value = globals()[word] = getattr(import_module(f"{__name__}.{_HOME[word]}"), word)
        return value
