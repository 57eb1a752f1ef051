"""`serve` imports more for a tool that asks. A garbage collection then would slow the cold start."""

from __future__ import annotations

import gc

import pytest

from mcp_functions import Elicit, serve, tool
from mcp_functions.dispatch import preparation


@tool
def greet(*, elicit: Elicit) -> str:
    return elicit("name", "Who are you?", str)


def test_no_garbage_collection_runs_while_serve_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled_at_import: list[bool] = []
    monkeypatch.setattr(preparation, "import_module", lambda _module: enabled_at_import.append(gc.isenabled()))
    serve(greet)
    assert set(enabled_at_import) == {False}


def test_serve_enables_the_garbage_collector_again() -> None:
    serve(greet)
    assert gc.isenabled()


def test_serve_enables_the_garbage_collector_again_after_a_failed_import(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_module: str) -> None:
        raise ImportError

    monkeypatch.setattr(preparation, "import_module", fail)
    with pytest.raises(ImportError):
        serve(greet)
    assert gc.isenabled()


def test_serve_leaves_a_disabled_garbage_collector_disabled() -> None:
    gc.disable()
    try:
        serve(greet)
        assert not gc.isenabled()
    finally:
        gc.enable()
