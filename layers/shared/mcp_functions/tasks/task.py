"""A task, as the table keeps it. docs/tasks.md describes the item.

    working  ->  input_required  ->  working  ->  completed, failed or cancelled

A worker is a Lambda invocation that runs one round of the task. While it runs, the worker holds the task's lease: no
other worker may take the task. A question to the client ends the round and the lease.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_functions.protocol.wire_types import ClientCapabilities

WORKING = "working"
INPUT_REQUIRED = "input_required"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED})


@dataclass(frozen=True)
class Task:
    """The state of a task. All times are unix milliseconds.

    A question has two keys. The handler gives the elicit key to `elicit`. The client sees the wire key, which may never
    occur twice in a task: a question that is asked again has "seat" first, and "seat-2" then.
    """

    tool: str  # the name of the called tool
    arguments: Mapping[str, Any]  # the arguments of the call; deleted when the task ends
    # issuer, subject and client of the caller; None on a server without sign-in
    principal: Sequence[str] | None
    # the scopes of the access token that brought the last answer, or the call
    scopes: Sequence[str]
    declared: ClientCapabilities  # the client's capabilities in the call
    flow: str  # the id of the conversation, which the log has on the line of each round
    created: int  # when the call became a task
    ttl: int  # milliseconds after `created` for which the task is kept
    updated: int  # when the status last changed
    status: str = WORKING  # one of the specification's five
    message: str = ""  # `statusMessage`; may be empty
    rounds: int = 0  # the number of completed rounds
    # answers and steps so far, from `round_record`
    record: Mapping[str, Any] = field(default_factory=dict)
    # The open questions: wire key -> [elicit key, request].
    requests: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    # questions of the last round: elicit key -> fingerprint
    asked: Mapping[str, str] = field(default_factory=dict)
    # answers to these questions: elicit key -> response
    given: Mapping[str, Any] = field(default_factory=dict)
    used: Sequence[str] = ()  # all wire keys that the task has ever had
    # Which worker has the task. `lease_until` and `retry_at` are never both set; 0 means that there is no such time.
    # the number of workers that have taken the task; a write of an earlier worker fails
    epoch: int = 0
    lease_until: int = 0  # when the lease of the worker ends, unless the worker renews it
    # when a poll may invoke another worker, because the invoked one has not taken the task
    retry_at: int = 0
    invocations: int = 0  # invoked workers since a worker last took the task
    attempts: int = 0  # workers in a row that took the task and made no progress
    cancel: bool = False  # True once the client has requested cancellation
    # how the task ended: {"result": …} or {"error": …}
    outcome: Mapping[str, Any] = field(default_factory=dict)
    # whose open tasks count it (`open_tasks.digest_caller`); None for an earlier release's
    caller: str | None = None

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
