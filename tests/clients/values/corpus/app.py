"""A tool for each type of the corpus, which takes a value of the type, and returns one of its first values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions import serve, tool
from tests.support.corpus import CASES, Case, first_values

if TYPE_CHECKING:
    from mcp_functions.handlers.base import Handler

COUNT = 5


def tool_of(number: int, case: Case) -> Handler[..., Any]:
    values = first_values(case, COUNT)

    def give(index: int, value: Any = None) -> Any:  # noqa: ANN401, ARG001 - the next line sets them
        return values[index % len(values)]

    give.__annotations__.update({"value": case.annotation, "return": case.annotation})
    return tool(name=f"type_{number}")(give)


handler = serve(*[tool_of(number, case) for number, case in enumerate(CASES.values())])
