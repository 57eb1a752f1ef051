"""The context object that Lambda passes to a function beside the event."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field

from mcp_functions.local.environment import arn

TIMEOUT = 29.0  # seconds, as in the template. In this process no function is stopped when it takes longer.
WORKER_TIMEOUT = 900.0  # seconds, for a worker of tasks


@dataclass(frozen=True)
class Context:
    """Lambda's context, attribute by attribute."""

    function_name: str
    aws_request_id: str
    invoked_function_arn: str
    log_group_name: str
    log_stream_name: str
    function_version: str = "$LATEST"
    memory_limit_in_mb: str = "512"  # AWS passes a text
    client_context: None = None
    identity: None = None
    tenant_id: None = None
    deadline: float = field(default=0.0, repr=False)

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the function may still run."""
        return max(0, int((self.deadline - time.monotonic()) * 1000))


def context_of(name: str, timeout: float) -> Context:
    """Make the context of one invocation of the function "<stack>-<folder>", with its timeout in seconds."""
    return Context(
        function_name=name,
        aws_request_id=str(uuid.uuid4()),
        invoked_function_arn=arn(name),
        log_group_name=f"/aws/lambda/{name}",
        log_stream_name=f"{time.strftime('%Y/%m/%d', time.gmtime())}/[$LATEST]{uuid.uuid4().hex}",
        deadline=time.monotonic() + timeout,
    )
