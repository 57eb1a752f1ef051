"""A task, as the table keeps it. docs/tasks.md describes the item.

    working  ->  input_required  ->  working  ->  completed, failed or cancelled

A worker is a Lambda invocation that runs one round of the task. While it runs, the worker holds the task's lease: no
other worker may take the task. A question to the client ends the round and the lease.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from mcp_functions.protocol.wire_types import (
        ClientCapabilities,
        Error,
        InputRequest,
        InputResponses,
        JSONObject,
        JSONValue,
        TaskStatus,
    )

WORKING: Final = "working"
INPUT_REQUIRED: Final = "input_required"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})


class TaskOutcome(TypedDict, total=False):
    """How a task ended: the result of the call, or an error."""

    result: JSONValue
    error: Error


@dataclass(frozen=True)
class Task:
    """The state of a task. All times are unix milliseconds.

    A question has two keys. The handler gives the elicit key to `elicit`. The client sees the wire key, which may never
    occur twice in a task: a question that is asked again has "seat" first, and "seat-2" then.
    """

    tool: str  # the name of the called tool
    arguments: JSONObject  # of the call; deleted when the task ends
    principal: Sequence[str] | None  # issuer, subject and client; None on a server without sign-in
    scopes: Sequence[str]  # of the access token that brought the last answer, or the call
    declared: ClientCapabilities  # the client's capabilities in the call
    flow: str  # the id of the conversation, which the log has on the line of each round
    created: int  # when the call became a task
    ttl: int  # milliseconds after `created` for which the task is kept
    updated: int  # when the status last changed
    status: TaskStatus = WORKING
    message: str = ""  # `statusMessage`; may be empty
    rounds: int = 0  # the number of completed rounds
    record: JSONObject = field(default_factory=dict)  # answers and steps so far, of `round_record`

    # The open questions: wire key -> (elicit key, question).
    requests: Mapping[str, tuple[str, InputRequest]] = field(default_factory=dict)
    # The questions of the last round, elicit key -> fingerprint, and their answers, elicit key -> answer.
    asked: Mapping[str, str] = field(default_factory=dict)
    given: InputResponses = field(default_factory=dict)
    used: Sequence[str] = ()  # all wire keys that the task has ever had

    # Which worker has the task. `lease_until` and `retry_at` are never both set; 0 means that there is no such time.
    epoch: int = 0  # how many workers have taken the task; a write of an earlier one fails
    lease_until: int = 0  # when the lease of the worker ends, unless the worker renews it
    retry_at: int = 0  # when a poll may invoke another worker, if none has taken the task
    invocations: int = 0  # invoked workers since a worker last took the task
    attempts: int = 0  # workers in a row that took the task and made no progress
    cancel: bool = False  # True once the client has requested cancellation

    outcome: TaskOutcome = field(default_factory=TaskOutcome)
    caller: str | None = None  # whose open tasks count it (`open_tasks.digest_caller`)

    @property
    def ended(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def expires(self) -> int:
        """When the task is deleted, in unix seconds."""
        return math.ceil((self.created + self.ttl) / 1000)


def to_json(task: Task) -> dict[str, Any]:
    """Return the payload of a task's item.

    The item has the names of the first release, because other releases read it: `held` says whether `until` is the end
    of a lease or the time of a retry, and `summons` counts the invocations.
    """
    payload = asdict(task)
    lease_until = payload.pop("lease_until")
    retry_at = payload.pop("retry_at")
    payload["held"] = lease_until > 0
    payload["until"] = lease_until or retry_at
    payload["summons"] = payload.pop("invocations")
    if task.caller is None:
        del payload["caller"]
    return payload


def from_json(payload: Mapping[str, Any]) -> Task:
    """Return the task in an item's payload; members that another release wrote are ignored."""
    names = {one.name for one in fields(Task)}
    members = {name: value for name, value in payload.items() if name in names}
    deadline = "lease_until" if payload["held"] else "retry_at"
    members[deadline] = payload["until"]
    members["invocations"] = payload["summons"]
    return Task(**members)
