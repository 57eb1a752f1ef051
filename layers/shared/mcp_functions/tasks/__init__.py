"""Calls that outlive their request: the extension `io.modelcontextprotocol/tasks`, on one table.

A task runs the same handler and the same rounds as every call. Its record travels to the next round in an item of the
table instead of the client. docs/tasks.md describes the states, the item and the lease.
"""

from __future__ import annotations

from mcp_functions.tasks.methods import Tasks
from mcp_functions.tasks.task import Task
from mcp_functions.tasks.worker import Worker
from mcp_functions.tasks.worker_invoker import WorkerInvoker, lambda_client

__all__ = ["Task", "Tasks", "Worker", "WorkerInvoker", "lambda_client"]
