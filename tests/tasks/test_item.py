"""The item of a task: releases of the function before and after an update read the same names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_functions.tasks.task import Task, from_json, to_json

# The payload of a task that a worker has taken, as the first release wrote it.
ITEM: dict[str, Any] = {
    "tool": "print_book",
    "arguments": {"chapters": 2},
    "principal": ["https://issuer.example", "alice", "client"],
    "scopes": ["books"],
    "declared": {"elicitation": {}},
    "flow": "5a",
    "created": 1_000,
    "ttl": 60_000,
    "updated": 1_000,
    "status": "working",
    "message": "rendering",
    "rounds": 1,
    "record": {"began": 1_000},
    "requests": {},
    "asked": {"agree": "fingerprint"},
    "given": {"agree": {"action": "accept"}},
    "used": ["agree"],
    "epoch": 2,
    "held": True,
    "until": 31_000,
    "summons": 0,
    "attempts": 1,
    "cancel": False,
    "outcome": {},
}


@pytest.mark.parametrize(
    "changed",
    [{}, {"held": False, "summons": 2}, {"held": False, "until": 0, "principal": None}],
    ids=["a worker has the lease", "a worker is invoked", "no worker"],
)
def test_an_item_of_the_first_release_is_read_and_written_unchanged(changed: dict[str, Any]) -> None:
    item = ITEM | changed
    written = json.loads(json.dumps(to_json(from_json(item))))
    assert written == item


def test_the_member_until_is_the_end_of_a_lease_or_the_time_of_a_retry() -> None:
    assert from_json(ITEM).lease_until == 31_000
    assert from_json(ITEM).retry_at == 0
    invoked = from_json(ITEM | {"held": False, "summons": 1})
    assert (invoked.lease_until, invoked.retry_at, invoked.invocations) == (0, 31_000, 1)


def test_a_task_keeps_the_digest_of_the_caller_whose_open_tasks_count_it() -> None:
    counted = ITEM | {"caller": "a digest"}
    assert to_json(from_json(counted))["caller"] == "a digest"


def test_members_that_a_later_release_wrote_are_ignored() -> None:
    task: Task = from_json(ITEM | {"priority": 1})
    assert task == from_json(ITEM)
