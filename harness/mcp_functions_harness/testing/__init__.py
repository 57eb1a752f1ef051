"""Test helpers for authors: a conversation with a function, as its client holds it.

    def test_a_bug_is_resolved(converse):
        talk = converse(handler).call(workItemId=4522, fields={"System.State": "Resolved"})
        assert talk.asked == ["resolution"]
        talk.accept(resolution={"resolution": "Fixed"})
        assert "Fixed" in talk.text

The function receives API Gateway's events and returns responses, as on AWS. KMS and the table are doubles in this
process. `converse` is a fixture of the package's pytest plugin. Without pytest, write
`with deployed(): talk = Conversation(handler)…`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import lazy_names

if TYPE_CHECKING:
    from mcp_functions_harness.client.tasks import EVERYTHING, Refused, TaskClient
    from mcp_functions_harness.doubles.s3 import MemoryBucket
    from mcp_functions_harness.testing.containers import Context
    from mcp_functions_harness.testing.conversation import WITH_APPS, WITH_TASKS, Conversation
    from mcp_functions_harness.testing.deployment import deployed
    from mcp_functions_harness.testing.dynamodb import MemoryTable

_NAMES = {
    ".doubles.s3": "MemoryBucket",
    ".client.tasks": "EVERYTHING Refused TaskClient",
    "containers": "Context",
    "conversation": "Conversation WITH_APPS WITH_TASKS",
    "deployment": "deployed",
    "dynamodb": "MemoryTable",
}
__all__ = [
    "EVERYTHING", "WITH_APPS", "WITH_TASKS", "Context", "Conversation", "MemoryBucket", "MemoryTable", "Refused",
    "TaskClient", "deployed",
]  # fmt: skip

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    # Each name is imported at its first use: pytest loads the plugin, and so this package, in every project.
    __getattr__ = lazy_names(__name__, _NAMES)
