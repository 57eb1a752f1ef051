"""Calls that outlive their request: the extension `io.modelcontextprotocol/tasks`, over one table.

The handler and the rounds engine are those of every call; only what carries a round to the next is another: an item of
the table instead of the client. docs/tasks.md says how; it holds the states, the item and the protocol of the lease.
"""

from __future__ import annotations

from mcp_functions.tasks.methods import Tasks
from mcp_functions.tasks.summons import Summons, lambda_client
from mcp_functions.tasks.task import Task
from mcp_functions.tasks.worker import Worker

__all__ = ["Summons", "Task", "Tasks", "Worker", "lambda_client"]
