"""The table of adopted servers has each of them, measured alone and adopted."""

from __future__ import annotations

from tests.benchmarks.adoption import NAMES, compare, table


def test_each_server_is_measured_alone_and_adopted() -> None:
    found = compare(list(NAMES), rounds=1)
    assert all(alone > 0 and adopted > 0 for alone, adopted in found.values())
    rows = table(found).splitlines()
    assert [row.partition(",")[0] for row in rows[2:]] == [f"| {name}" for name in NAMES]
