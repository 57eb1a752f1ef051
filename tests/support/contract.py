"""docs/contract.json, with the names of one deployment in the place of `<stack>` and the like."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

FILE = Path(__file__).parents[2] / "docs/contract.json"
CONTRACT: Json = json.loads(FILE.read_text(encoding="utf-8"))


def filled(written: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON is any value
    """Replace the placeholders that are known here, as {"stack": "shop"}; others stay."""
    match written:
        case str(text):
            return re.sub(r"<([a-z-]+)>", lambda found: values.get(found[1], found[0]), text)
        case dict(members):
            return {name: filled(one, values) for name, one in members.items()}
        case list(items):
            return [filled(one, values) for one in items]
    return written


def routes(mode: str, folders: list[str]) -> dict[str, Json]:
    """Return the routes of a mode by method and path, as "ANY /mcp/add"; one route for each folder."""
    found: dict[str, Json] = {}
    for row in CONTRACT["routes"]:
        if mode in row["modes"]:
            for folder in folders if "<folder>" in row["path"] else [""]:
                one = filled(row, {"folder": folder})
                found[f"{one['method']} {one['path']}"] = one
    return found
