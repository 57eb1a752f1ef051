"""Checks who invokes whom, and how long each waits.

    API Gateway -> functions/mcp, the front door -> a function -> its worker, if its calls may become MCP tasks

A worker is a second Lambda with the function's code. It continues a task, which may take minutes.
"""

import json
from collections.abc import Iterator

from mcp_functions_harness.checks import iam
from mcp_functions_harness.checks.permissions import WRITE_BLOCK
from mcp_functions_harness.checks.project import Block, Project
from mcp_functions_harness.lambdas.functions import FRONT_DOOR

API_GATEWAY_SECONDS = 30  # API Gateway waits no longer for a function
OWN_OF_WORKER = {"Timeout", "Tags", "Policies"}  # which authors change, or other checks read
DEFAULT_TIMEOUT = 3  # seconds; Lambda's default


def the_front_door_may_invoke_this_stacks_functions(project: Project) -> Iterator[str]:
    """Check that the front door may invoke the functions of its stack, and no others."""
    if project.front_door is None:
        return
    block = project.front_door
    has_other_policies = any(iam.has_action_of(statement, "lambda") for statement in project.statements(block))
    if iam.MAY_INVOKE not in block.policies or has_other_policies:
        yield f"{block.logical_id} must have this policy for Lambda, and no other: {json.dumps(iam.MAY_INVOKE)}"


def functions_time_out_before_their_callers(project: Project) -> Iterator[str]:
    """Check that a function's Timeout is under the front door's, and the front door's under API Gateway's."""
    if project.front_door is None:
        return
    default = project.globals.get("Timeout", DEFAULT_TIMEOUT)
    seconds = {folder: block.properties.get("Timeout", default) for folder, block in project.functions.items()}
    limit = seconds.pop(FRONT_DOOR)  # the front door's own timeout
    if not isinstance(limit, int) or limit >= API_GATEWAY_SECONDS:
        yield f"the front door's Timeout must be a number under API Gateway's {API_GATEWAY_SECONDS} s"
        return
    for folder, timeout in sorted(seconds.items()):
        if isinstance(timeout, int) and timeout >= limit:  # the value of a !Ref is not known here
            yield f"functions/{folder}: Timeout {timeout} must be under the front door's {limit}"


def a_function_has_a_worker_if_and_only_if_it_has_tasks(project: Project) -> Iterator[str]:
    """Check that every function with tasks has a worker, as `init` writes it, and no other function has one."""
    for folder in sorted(project.tasks & project.functions.keys()):
        block = project.functions[folder]
        worker = project.workers.get(folder)
        if worker is None:
            yield f"functions/{folder} has tasks: add {block.logical_id}Worker, {WRITE_BLOCK} {folder}"
        else:
            yield from _check_worker(block, worker)
    for folder in sorted(project.workers.keys() - project.tasks):
        worker_id = project.workers[folder].logical_id
        yield f"{worker_id} works for functions/{folder}, which has no tasks: remove it, {WRITE_BLOCK} {folder}"


def _check_worker(block: Block, worker: Block) -> Iterator[str]:
    """Check that a worker is the block that `block` writes, with the function's Environment and keys of the author's.

    Its tag and its policies may be those of a Role, so other checks read them.
    """
    worker_id, properties = worker.logical_id, worker.properties
    for name, value in iam.scaffold_worker(block.folder, block.logical_id).items():
        if name not in OWN_OF_WORKER and not _includes(properties.get(name), value):
            yield f"{worker_id} must have {name}: {json.dumps(value)}, as mcp-functions block {block.folder} prints it"
    if properties.get("Environment") != block.properties.get("Environment"):
        yield f"{worker_id} must have the Environment of {block.logical_id}, whose states it opens"
    if worker.access != {iam.SEAL, iam.KEEP}:
        yield f"{worker_id} must have Policies: [!Ref {iam.SEAL}, !Ref {iam.KEEP}], as {block.logical_id} has"
    if properties.get("Events"):
        yield f"{worker_id} must have no Events: it takes orders of {block.logical_id} alone"


def _includes(value: object, written: object) -> bool:
    """Whether a value is what was written; a mapping may have more keys."""
    if isinstance(value, dict) and isinstance(written, dict):
        return all(_includes(value.get(name), part) for name, part in written.items())
    return value == written
