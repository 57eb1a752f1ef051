"""Lambda on this machine: it loads the functions of a project, calls them and records each invocation."""

from mcp_functions.local.lambdas.service import MAX_PAYLOAD, Invocation, Lambdas, Outcome, Throttled, Watcher

__all__ = ["MAX_PAYLOAD", "Invocation", "Lambdas", "Outcome", "Throttled", "Watcher"]
