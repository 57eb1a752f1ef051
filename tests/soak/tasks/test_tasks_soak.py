"""A short soak of tasks, and a checker that finds every kind of breach."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from tests.soak.tasks import checker, run
from tests.support import modes

if TYPE_CHECKING:
    from tests.soak.tasks.run import Seen

TASKS, SEED = 8, 20261122


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    modes.skip_without_runtime()
    return run.run(TASKS, seed=SEED, directory=tmp_path_factory.mktemp("tasks"), clients=8, kills=0.02)


def test_every_task_has_one_correct_result_although_its_workers_are_killed(worn: Seen) -> None:
    assert checker.check(worn) == []
    ends = [one.ends[0]["status"] for one in worn.heard]
    assert ends.count("completed") > TASKS // 2
    assert worn.killed + sum(line["kind"] == "dies" for line in worn.journal) > 0
    assert worn.faults["throttled"] > 0


def break_(seen: Seen, broken: str) -> None:
    if broken == "end":
        seen.heard[0].ends.append({**seen.heard[0].ends[-1], "status": "working"})
    if broken == "step":
        parts = [line for line in seen.journal if line["kind"] == "part" and line["part"] == 0]
        seen.journal.append(parts[0])
    if broken == "charge":
        charges = [line for line in seen.journal if line["kind"] == "charge"]
        seen.journal.append({**charges[0], "key": "another"})
    if broken == "result":
        done = next(one for one in seen.heard if one.ends[-1]["status"] == "completed")
        done.ends[:] = [{**end, "result": {**end["result"], "content": [{"text": "x"}]}} for end in done.ends]
    if broken == "failed":
        seen.heard[0].ends[:] = [{"status": "failed", "error": {"code": -32603, "message": "Internal error"}}]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("end", "an end that changed"),
        ("step", "a recorded step was repeated"),
        ("charge", "one payment under two keys"),
        ("result", "a wrong result"),
        ("failed", "a failure that is not honest"),
    ],
)
def test_the_checker_finds_each_breach(worn: Seen, broken: str, said: str) -> None:
    changed = deepcopy(worn)
    break_(changed, broken)
    assert any(breach.startswith(said) for breach in checker.check(changed))
