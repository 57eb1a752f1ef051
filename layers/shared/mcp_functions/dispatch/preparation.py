"""Imports the modules that the requests of a function will need, while the function starts.

Lambda gives a full CPU to a function that starts, so an import costs less then than in the first request. A function
imports only what its handlers need: the rest would make its start slower. docs/performance.md has the measurements.

tests/project/test_budgets.py fails if the first request imports a module of this package that is missing here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_functions.handlers.function_handler import FunctionHandler
from mcp_functions.protocol.json_reader import GcPause
from mcp_functions.settings import is_deployed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.handlers.base import Handler


def prepare(handlers: Sequence[Handler[..., Any]], *, uses_kms: bool) -> None:
    """Import what requests to these handlers will need, and prepare calls to AWS. No call is made.

    `uses_kms` says whether KMS has the keys, if the function seals states.
    """
    with GcPause():  # imports leave no garbage, and looking for it would take 4 ms
        import_module("mcp_functions.dispatch.dispatcher")
        for handler in handlers:
            _import_for(handler)
        if uses_kms and any(handler.needs_state for handler in handlers):
            _prepare_service("kms")
        if any(handler.needs_table for handler in handlers):
            _prepare_service("dynamodb")


def _import_for(handler: Handler[..., Any]) -> None:
    """Import what requests to one handler need. A second import of a module does nothing."""
    if handler.needs_round:
        import_module("mcp_functions.dispatch.conversations")
    if handler.needs_state:
        import_module("mcp_functions.dispatch.seal_factory")
        import_module("mcp_functions.seal.keyring")
        import_module("mcp_functions.seal.envelope")
    # A server of another library (`adopt`) reads the answers to its questions itself.
    if handler.needs_state and isinstance(handler, FunctionHandler):
        import_module("mcp_functions.schemas.annotations")
        import_module("mcp_functions.schemas.class_types")
        if "pydantic" in sys.modules:  # the author may have a form that is a pydantic model
            import_module("mcp_functions.schemas.pydantic_types")
    if isinstance(handler, FunctionHandler) and handler.hook:
        import_module("mcp_functions.handlers.hooks")
    if handler.needs_table:
        import_module("mcp_functions.dispatch.single_use")
    if handler.task and is_deployed("tasks"):
        import_module("mcp_functions.tasks.methods")
        import_module("mcp_functions.tasks.worker")


def _prepare_service(service: str) -> None:
    """Prepare the calls of a service of AWS, "kms" or "dynamodb". A tool that never asks calls neither."""
    from mcp_functions import aws

    aws.prepare(service)
