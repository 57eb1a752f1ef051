"""The fixtures of the suite use public names only, have a fresh catalog, and are the same in both placements."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

import ast
from pathlib import Path
from typing import Any

from mcp_functions.handlers import catalog
from mcp_functions.skills import FILE, Bundle
from mcp_functions_harness import catalog as generated
from mcp_functions_harness.lambdas.functions import Functions

HERE = Path(__file__).parent
LISTS = ("tools", "prompts", "resources", "resourceTemplates")
APPS = sorted(HERE.glob("*/*/app.py"))

# The modules that authors import beside the root (docs/compatibility.md).
PUBLIC = {f"mcp_functions.{name}" for name in ("annotated", "content", "hooks", "low_level")}


def test_the_catalog_is_fresh() -> None:
    written = (HERE / "functions" / "mcp" / "catalog.json").read_text(encoding="utf-8")
    command = "python -m mcp_functions_harness catalog --functions tests/conformance/functions"
    assert written == generated.text(generated.generate(HERE / "functions")), f"write it with: {command}"


def test_both_placements_list_the_same_handlers() -> None:
    many: Any = generated.generate(HERE / "functions")
    with Functions(HERE / "one") as loaded:
        one: Mapping[str, Any] = Bundle(HERE / "functions" / "mcp" / FILE).add_to(
            catalog.build(loaded.by_folder["mcp"].handlers)
        )
    assert {listed: one[listed] for listed in LISTS} == {listed: many[listed] for listed in LISTS}


def test_every_handler_has_its_own_lambda() -> None:
    listed = generated.folders(generated.generate(HERE / "functions"))
    folders = [folder for names in listed.values() for folder in names.values()]
    assert sorted(folders) == sorted(app.parent.name for app in APPS if app.parent.name != "mcp")


def test_the_fixtures_use_only_public_names() -> None:
    internal = [(app, module) for app in APPS for module in _imported(app) if module.startswith("mcp_functions.")]
    assert [found for found in internal if found[1] not in PUBLIC] == []


def _imported(app: Path) -> list[str]:
    statements = ast.walk(ast.parse(app.read_text(encoding="utf-8")))
    return [str(statement.module) for statement in statements if isinstance(statement, ast.ImportFrom)]
