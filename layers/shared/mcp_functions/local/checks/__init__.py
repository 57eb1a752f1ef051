"""Checks that functions/, template.yaml and catalog.json agree. A project runs them in its own tests.

A check is a function from the project to complaints; each is one line that says what is missing, and where. A project
may have other resources and routes too: no check looks at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.local.checks.invocations import (
    API_ROLE,
    a_function_has_a_worker_if_and_only_if_it_has_tasks,
    functions_time_out_before_their_callers,
    the_api_may_invoke_the_functions_and_nothing_else,
    the_front_door_may_invoke_the_others_and_nothing_else,
)
from mcp_functions.local.checks.permissions import (
    TABLE,
    a_function_has_the_table_if_and_only_if_it_keeps_something,
    a_function_may_seal_if_and_only_if_it_can_ask,
    a_function_may_use_the_bucket_if_it_has_one,
    the_table_keeps_what_is_written_and_deletes_what_has_expired,
)
from mcp_functions.local.checks.project import FOLDER, Project, pascal, read
from mcp_functions.local.checks.routes import (
    every_folder_is_deployed,
    every_folder_is_listed,
    every_function_has_its_route_and_every_route_its_authorizer,
    public_routes_exist_and_are_conditional,
)
from mcp_functions.local.checks.statements import KEY, may_keep_as, may_seal_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "API_ROLE",
    "CHECKS",
    "FOLDER",
    "KEY",
    "TABLE",
    "Project",
    "complaints",
    "every_folder_is_listed",
    "may_keep_as",
    "may_seal_as",
    "pascal",
    "read",
]

CHECKS: tuple[Callable[[Project], Iterator[str]], ...] = (
    every_folder_is_deployed,
    every_folder_is_listed,
    a_function_may_seal_if_and_only_if_it_can_ask,
    a_function_has_the_table_if_and_only_if_it_keeps_something,
    the_table_keeps_what_is_written_and_deletes_what_has_expired,
    a_function_may_use_the_bucket_if_it_has_one,
    the_front_door_may_invoke_the_others_and_nothing_else,
    the_api_may_invoke_the_functions_and_nothing_else,
    every_function_has_its_route_and_every_route_its_authorizer,
    public_routes_exist_and_are_conditional,
    functions_time_out_before_their_callers,
    a_function_has_a_worker_if_and_only_if_it_has_tasks,
)


def complaints(project: Project) -> list[str]:
    """List everything that does not agree, one line each."""
    return [line for check in CHECKS for line in check(project)]
