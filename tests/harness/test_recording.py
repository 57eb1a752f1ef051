"""A recording of a conversation replaces the events of an earlier one in events/<function>/."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions_harness import recording

if TYPE_CHECKING:
    from pathlib import Path


def test_an_update_deletes_the_rounds_that_a_conversation_no_longer_has(tmp_path: Path) -> None:
    first = recording.round_of("add", 1, "tools/call", {"name": "add", "arguments": {}})
    second = recording.round_of("add", 2, "tools/call", {"name": "add", "arguments": {"a": 1}})
    assert recording.check(tmp_path, "add", [first, second], ["call", "consent"], update=True) == []
    (tmp_path / "add" / "notes.json").write_text("{}", encoding="utf-8")

    left = f"{tmp_path.name}/add/2-consent.json belongs to no round: pytest --update-events"
    assert recording.check(tmp_path, "add", [first], ["call"]) == [left]
    assert recording.check(tmp_path, "add", [first], ["call"], update=True) == []
    assert sorted(path.name for path in (tmp_path / "add").iterdir()) == ["1-call.json", "notes.json"]


def test_an_update_without_a_round_makes_no_folder(tmp_path: Path) -> None:
    assert recording.check(tmp_path, "add", [], [], update=True) == []
    assert list(tmp_path.iterdir()) == []
