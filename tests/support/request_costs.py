"""The most that one request costs, whatever its client sends: `tests/end_to_end/test_request_costs.py` counts it.

docs/costs.md computes its worst case from this table (`tests.benchmarks.cost`).
"""

from __future__ import annotations

from typing import NamedTuple

from mcp_functions.protocol.constants import SKILL_METHODS, TASK_METHODS


class Cost(NamedTuple):
    """What AWS bills for one request, beside Lambda's time."""

    reads: float = 0  # read units of DynamoDB
    writes: int = 0  # write units
    kms: int = 0  # calls to KMS, if each container and each key is new
    invocations: int = 0  # of Lambda functions by the endpoint and by functions, workers of tasks included


class Case(NamedTuple):
    """A kind of request."""

    revision: str  # "2026-07-28", or "2025" for its three revisions
    method: str  # or what a client of 2025 sends instead of a method: "answer" or "resume"
    how: str = ""  # what makes it expensive
    own: bool = False  # whether these are the function's own data


MODERN, LEGACY = "2026-07-28", "2025"
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
# The methods that one revision or both do not have, or that need no more than the request itself.
OTHERS = (
    "ping", "resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "tasks/list", "tasks/result",
    "tasks/input_response", "turns/resume", "notifications/initialized", "notifications/progress",
    "notifications/roots/list_changed",
)  # fmt: skip
# A request with a state is forwarded, and the function opens it.
CALLED = Cost(kms=1, invocations=1)
# The endpoint opens the session of a client of 2025.
IN_SESSION = Cost(kms=1)

MOST: dict[Case, Cost] = {
    **{Case(MODERN, method): Cost() for method in ("server/discover", *LISTS, *OTHERS, *SKILL_METHODS)},
    **{Case(MODERN, method): Cost() for method in ("initialize", "logging/setLevel", "notifications/cancelled")},
    Case(MODERN, "completion/complete"): Cost(invocations=1),
    Case(MODERN, "prompts/get"): CALLED,
    Case(MODERN, "resources/read"): CALLED,
    Case(MODERN, "tools/call", "that answers"): Cost(0, 0, kms=2, invocations=1),
    Case(MODERN, "tools/call", "that answers a round of single use, after the largest state"): Cost(
        9, 34, kms=2, invocations=1
    ),
    Case(MODERN, "tools/call", "that answers a round of single use, while others do"): Cost(
        54, 99, kms=2, invocations=1
    ),
    Case(MODERN, "tools/call", "that answers a round of single use, with the largest result", own=True): Cost(
        1, 387, kms=1, invocations=1
    ),
    Case(MODERN, "tools/call", "that repeats a round of single use with the largest result", own=True): Cost(
        97, 0, kms=1, invocations=1
    ),
    Case(MODERN, "tools/call", "that begins a task with the largest arguments"): Cost(1, 47, kms=2, invocations=2),
    Case(MODERN, "tools/call", "that begins a task, while others do"): Cost(20, 40, kms=2, invocations=1),
    Case(MODERN, "tools/call", "that is refused, because 100 tasks are open"): Cost(1, 0, kms=1, invocations=1),
    Case(MODERN, "tasks/get", "of a task with the largest arguments and answers"): Cost(22, 0, kms=1, invocations=1),
    Case(MODERN, "tasks/get", "of a task that has ended with the largest arguments"): Cost(12, 0, kms=2, invocations=1),
    Case(MODERN, "tasks/get", "of a task whose own question fills its item", own=True): Cost(
        97, 0, kms=1, invocations=1
    ),
    Case(MODERN, "tasks/get", "of a task whose worker has died"): Cost(11, 43, kms=2, invocations=2),
    Case(MODERN, "tasks/get", "of a task whose worker has died, while others change it"): Cost(
        88, 172, kms=2, invocations=1
    ),
    Case(MODERN, "tasks/update", "with the largest answers"): Cost(11, 84, kms=2, invocations=1),
    Case(MODERN, "tasks/update", "with the largest answers, while others answer"): Cost(88, 176, kms=2, invocations=1),
    Case(MODERN, "tasks/update", "of a task whose own question fills its item", own=True): Cost(
        97, 387, kms=2, invocations=1
    ),
    Case(MODERN, "tasks/cancel", "of a task with the largest arguments"): Cost(12, 45, kms=2, invocations=1),
    Case(MODERN, "tasks/cancel", "of a task with the largest arguments, while others change it"): Cost(
        88, 176, kms=2, invocations=1
    ),
    Case(MODERN, "tasks/cancel", "of a task whose own question fills its item", own=True): Cost(
        98, 388, kms=2, invocations=1
    ),
    **{
        Case(LEGACY, method): IN_SESSION
        for method in ("server/discover", *LISTS, *OTHERS, *SKILL_METHODS, *TASK_METHODS)
    },
    **{Case(LEGACY, method): IN_SESSION for method in ("initialize", "logging/setLevel")},
    Case(LEGACY, "completion/complete"): Cost(kms=1, invocations=1),
    Case(LEGACY, "tools/call", "that asks, with the largest arguments"): Cost(0, 58, kms=3, invocations=1),
    Case(LEGACY, "resources/read", "that asks, with the largest arguments"): Cost(0, 37, kms=3, invocations=1),
    Case(LEGACY, "prompts/get", "that asks, with the largest arguments"): Cost(0, 58, kms=3, invocations=1),
    Case(LEGACY, "tools/call", "that asks, and has the id of a call that waits"): Cost(30, 116, kms=4, invocations=1),
    Case(LEGACY, "tools/call", "that works without a question, in several rounds"): Cost(0, 4, kms=3, invocations=3),
    Case(LEGACY, "answer", "to one of two questions of the largest call"): Cost(15, 58, kms=3, invocations=0),
    Case(LEGACY, "answer", "that runs a round of the largest call"): Cost(14, 112, kms=5, invocations=1),
    Case(LEGACY, "answer", "that was sent before"): Cost(1, 0, kms=2, invocations=0),
    Case(LEGACY, "answer", "whose call has the largest result", own=True): Cost(1, 390, kms=4, invocations=1),
    Case(LEGACY, "resume", "of the largest call"): Cost(15, 0, kms=3, invocations=0),
    Case(LEGACY, "resume", "of a call with the largest result", own=True): Cost(97, 0, kms=3, invocations=0),
    Case(LEGACY, "resume", "that runs another round of the largest call"): Cost(11, 97, kms=5, invocations=1),
    Case(LEGACY, "notifications/cancelled", "for the largest call"): Cost(15, 58, kms=2, invocations=0),
}
