"""Checks that functions/, template.yaml and catalog.json agree. A project runs them in its own tests.

A check takes the project and yields complaints; each is one line that says what is missing, and where. A project may
have other resources and routes too: no check looks at them.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from mcp_functions_harness import catalog
from mcp_functions_harness.checks import imports, invocations, own_policies, permissions, routes, skills, values
from mcp_functions_harness.checks.project import FOLDER, Project, pascal, read
from mcp_functions_harness.problems import Problem

__all__ = ["CHECKS", "FOLDER", "Project", "all_complaints", "complaints", "pascal", "read"]

CHECKS: tuple[Callable[[Project], Iterator[str]], ...] = (
    routes.every_folder_is_deployed,
    routes.every_function_is_mcp_and_takes_http_alone,
    routes.every_folder_is_listed,
    routes.every_function_has_its_route_behind_the_authorizer,
    routes.the_api_enforces_what_functions_believe,
    routes.the_sign_in_front_grants_the_scopes_that_handlers_need,
    routes.settings_of_routes_name_routes_that_exist,
    routes.clients_of_a_user_pool_wait_for_its_scopes,
    permissions.a_function_has_the_policies_that_its_handlers_need,
    permissions.a_function_is_tagged_with_its_own_name,
    permissions.the_two_policies_open_what_is_under_a_functions_own_name,
    own_policies.a_function_reaches_the_key_and_the_table_by_these_policies_only,
    permissions.the_table_keeps_what_is_written_and_deletes_what_has_expired,
    invocations.the_front_door_may_invoke_this_stacks_functions,
    own_policies.a_role_of_its_own_is_in_the_template_and_for_one_function,
    own_policies.nobody_else_may_invoke_a_function,
    invocations.functions_time_out_before_their_callers,
    invocations.a_function_has_a_worker_if_and_only_if_it_has_tasks,
    imports.a_function_finds_on_lambda_what_it_imports,
    values.functions_know_the_variables_of_the_template,
    values.every_parameter_has_a_value,
    skills.every_skill_can_be_served,
)


def all_complaints(root: Path) -> list[str]:
    """List everything that does not agree in the project of a folder, its catalog too.

    If a file cannot be read, or a function does not load, that is the only line:
    every check would repeat it.
    """
    try:
        project = read(root)
    except Problem as problem:
        return [str(problem)]
    differences = catalog.differences(project.catalog, catalog.generate(root / FOLDER))
    outdated = ["functions/mcp/catalog.json is out of date: run make catalog", *differences] if differences else []
    return [*complaints(project), *outdated]


def complaints(project: Project) -> list[str]:
    """List everything that does not agree, one line each."""
    return [line for check in CHECKS for line in check(project)]
