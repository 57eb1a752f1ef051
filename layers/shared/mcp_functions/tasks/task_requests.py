"""Checks a request about a task: in the function that keeps the task, and in the front door before it.

The id of a task is `<folder>.<random text>`, with the folder of the function that keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import EXTENSION_TASKS, TASK_METHODS
from mcp_functions.protocol.errors import InvalidParams, MissingRequiredClientCapability, UnknownTask
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from mcp_functions.protocol.catalog_types import Catalog
    from mcp_functions.protocol.messages import Request


def read_task_id(request: Request) -> str:
    """Check a request about a task, and return the id of the task.

    `headers.check_request` does not check `Mcp-Name` here, because without the extension these methods do not exist.

    Raises:
        HeaderMismatch: the header `Mcp-Name` is missing, malformed, or differs from `params.taskId` (extension tasks).
        MissingRequiredClientCapability: the client does not declare the extension on this request.
        InvalidParams: the id is missing, or no text.
    """
    task_id = request.params.get(TASK_METHODS[request.method])
    if isinstance(task_id, str) and headers.read(request.headers, headers.NAME_HEADER) != task_id:
        raise headers.mismatch(headers.NAME_HEADER)
    if not declares_extension(request):
        raise missing_extension()
    if not isinstance(task_id, str):
        raise InvalidParams(message="params.taskId must be a string")
    return task_id


def declares_extension(request: Request) -> bool:
    """Tell whether the client declares the tasks extension on this request."""
    return isinstance(value_at(request.capabilities, "extensions", EXTENSION_TASKS), dict)


def missing_extension() -> MissingRequiredClientCapability:
    """Return the error for a client that does not declare the extension."""
    return MissingRequiredClientCapability({"extensions": {EXTENSION_TASKS: {}}})


def function_of(catalog: Catalog, task_id: str) -> str:
    """Return the folder of the function that keeps a task.

    Raises:
        UnknownTask: the id does not begin with the folder of a function that has tasks.
    """
    folder = task_id.partition(".")[0]
    if folder not in catalog.get("tasks", ()):
        raise UnknownTask
    return folder
