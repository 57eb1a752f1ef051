"""Checks of who may invoke which function, and for how long: the API, the endpoint, and the workers of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local.checks.permissions import PRINT_BLOCK
from mcp_functions.local.checks.statements import (
    INVOKE,
    actions,
    function_name,
    invoked_functions,
    may_keep_as,
    may_seal_as,
    resources,
    statements,
    substitution,
    without_resource,
)
from mcp_functions.local.lambdas.functions import FRONT_DOOR
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Block, Project

API_GATEWAY_SECONDS = 30
DEFAULT_TIMEOUT = 3  # seconds, Lambda's own
API_ROLE = "ApiRole"
WORKER_QUALIFIER = {"Fn::If": ["IsLive", "live", "$LATEST"]}


def the_front_door_may_invoke_the_others_and_nothing_else(project: Project) -> Iterator[str]:
    """Check that the endpoint may invoke every handler, by name, and nothing else."""
    if project.front_door is None:
        return
    logical_id, properties = project.front_door
    # other checks look at these statements
    checked = [without_resource(may_seal_as(FRONT_DOOR)), without_resource(may_keep_as(FRONT_DOOR))]
    left = [each for each in statements(properties) if without_resource(each) not in checked and "Fn::If" not in each]
    if [actions(statement) for statement in left] != [[INVOKE]]:
        yield f"{logical_id} must have one statement, which allows {INVOKE}"
        return
    handlers = {block.logical_id for folder, block in project.functions.items() if folder != FRONT_DOOR}
    yield from _differences(logical_id, invoked_functions(left), handlers, "no handler")


def the_api_may_invoke_the_functions_and_nothing_else(project: Project) -> Iterator[str]:
    """Check that the API's role may invoke every function, by name, and that no other principal may."""
    role = project.of_type("AWS::IAM::Role").get(API_ROLE)
    if role is None:
        yield f"there is no {API_ROLE}: the API cannot invoke a function"
        return
    documents = [policy.get("PolicyDocument", {}) for policy in role.get("Policies", [])]
    allowed = statements({"Policies": documents})
    if role.get("ManagedPolicyArns") or any(actions(statement) != [INVOKE] for statement in allowed):
        yield f"{API_ROLE} must be allowed only {INVOKE}"
    functions = {block.logical_id for block in project.functions.values()}
    yield from _differences(API_ROLE, invoked_functions(allowed), functions, "no function of functions/")
    for name, permission in project.of_type("AWS::Lambda::Permission").items():
        if function_name(permission.get("FunctionName")) in functions:
            yield f"{name} lets others than the API and the endpoint invoke a function: they could claim any identity"


def _differences(role: str, allowed: set[str], expected: set[str], otherwise: str) -> Iterator[str]:
    for logical_id in sorted(expected - allowed):
        yield f"{role} may not invoke {logical_id}: add !Sub ${{{logical_id}.Arn}}${{Qualifier}} to its policy"
    for logical_id in sorted(allowed - expected):
        yield f"{role} may invoke {logical_id}, which is {otherwise}: remove it from its policy"


def functions_time_out_before_their_callers(project: Project) -> Iterator[str]:
    """Check that a function's Timeout is under the front door's, and the front door's under API Gateway's."""
    if project.front_door is None:
        return
    default = project.template.get("Globals", {}).get("Function", {}).get("Timeout", DEFAULT_TIMEOUT)
    seconds = {folder: block.properties.get("Timeout", default) for folder, block in project.functions.items()}
    limit = seconds.pop(FRONT_DOOR)
    if limit >= API_GATEWAY_SECONDS:
        yield f"the front door's Timeout must be under API Gateway's {API_GATEWAY_SECONDS} s"
    for folder, timeout in sorted(seconds.items()):
        if timeout >= limit:
            yield f"functions/{folder}: Timeout {timeout} must be under the front door's {limit}"


def a_function_has_a_worker_if_and_only_if_it_has_tasks(project: Project) -> Iterator[str]:
    """Check that every function with tasks has a worker: the same code with a longer timeout and no route."""
    for folder in sorted(project.tasks & project.functions.keys()):
        block = project.functions[folder]
        worker = project.workers.get(folder)
        if worker is None:
            yield f"functions/{folder} has tasks: add {block.logical_id}Worker; {PRINT_BLOCK} task {folder}"
        else:
            yield from _continues(project, folder, block, worker)
    for folder in sorted(project.workers.keys() - project.tasks):
        yield f"{project.workers[folder].logical_id} works for functions/{folder}, which has no tasks"


def _continues(project: Project, folder: str, block: Block, worker: Block) -> Iterator[str]:
    worker_id, properties = worker
    name = f"${{AWS::StackName}}-{folder}{WORKER}"
    if properties.get("FunctionName") != {"Fn::Sub": name}:
        yield f"{worker_id} must have FunctionName: !Sub {name}"
    if properties.get("Environment") != block.properties.get("Environment"):
        yield f"{worker_id} must have the Environment of {block.logical_id}, whose states it opens"
    if properties.get("RecursiveLoop") != "Allow":
        seconds = properties.get("Timeout")
        yield f"{worker_id} needs RecursiveLoop: Allow, for work that takes longer than {seconds} s"
    for one in (block, worker):
        if not any(_invokes(statement, f"{folder}{WORKER}") for statement in statements(one.properties)):
            ending = f"-{folder}{WORKER}${{Qualifier}}"
            yield f"{one.logical_id} may not invoke a function that ends in {ending}: its tasks would wait for ever"
    yield from _has_no_retries(project, worker_id)


def _invokes(statement: dict[str, Any], function: str) -> bool:
    # Calls must go to the alias: only a worker of the same version can open what the function sealed.
    names = [str(substitution(resource)) for resource in resources(statement)]
    return actions(statement) == [INVOKE] and any(name.endswith(f"-{function}${{Qualifier}}") for name in names)


def _has_no_retries(project: Project, worker_id: str) -> Iterator[str]:
    """Check that Lambda does not retry a worker: its task may have been given to another worker."""
    configurations = project.of_type("AWS::Lambda::EventInvokeConfig").values()
    of_worker = [one for one in configurations if one.get("FunctionName") == {"Ref": worker_id}]
    if not of_worker or of_worker[0].get("MaximumRetryAttempts") != 0:
        yield f"{worker_id} needs an AWS::Lambda::EventInvokeConfig with MaximumRetryAttempts: 0"
    elif of_worker[0].get("Qualifier") != WORKER_QUALIFIER:
        yield f"the EventInvokeConfig of {worker_id} needs Qualifier: !If [IsLive, live, $LATEST]"
