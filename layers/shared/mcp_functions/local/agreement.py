"""functions/, template.yaml and catalog.json say the same: claims that a project's tests make.

A claim is a function from the project to complaints, each a line that says what is missing where. What a project has
beside its MCP functions, other resources and other routes, is its own affair.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local import catalog as catalogs
from mcp_functions.local import environment, template
from mcp_functions.local.functions import FRONT_DOOR, Functions
from mcp_functions.protocol.constants import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

API_GATEWAY_SECONDS = 30
FOLDER = "functions"

AUTHORIZER = {
    "AuthorizationType": {"Fn::If": ["UsesIam", "AWS_IAM", {"Fn::If": ["UsesJwt", "JWT", "NONE"]}]},
    "AuthorizerId": {"Fn::If": ["UsesJwt", {"Ref": "JwtAuthorizer"}, {"Ref": "AWS::NoValue"}]},
}
KEY = {"Fn::GetAtt": "RequestStateKey.Arn"}
TABLE = {"Ref": "Table"}
TABLE_TYPE = "AWS::DynamoDB::Table"
TABLE_PROPERTIES = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
}
KEY_ARN = re.compile(r"arn:(aws[a-z-]*|\$\{AWS::Partition\}):kms:[^*?]+:key/[\w-]+")  # one key, no pattern, no alias
INVOKE = "lambda:InvokeFunction"
BLOCK = "the whole block is printed by: python -m mcp_functions.local block"
API_ROLE = "ApiRole"
WORKER_QUALIFIER = {"Fn::If": ["IsLive", "live", "$LATEST"]}
METADATA = "/.well-known/oauth-protected-resource"
OPEN = {  # route -> the condition under which anybody may use it: it says nothing that is anybody's
    "OPTIONS /mcp": "HasOrigins",
    f"ANY {METADATA}": "UsesJwt",
    f"ANY {METADATA}/mcp": "UsesJwt",
}

# A function that asked until now goes on for one lifetime, because clients still hold its states.
STOPPED = " (if it asked until now: keep `elicit: Elicit` in its signature, unused, for one answer_within)"


@dataclass(frozen=True)
class Project:
    """What has to agree."""

    folders: frozenset[str]  # of functions/ that hold an app.py
    offering: frozenset[str]  # those with a handler: all but the front door, as a rule
    asking: frozenset[str]  # those with a handler that can ask
    keeping: frozenset[str]  # those with a handler that keeps something in the table
    catalog: dict[str, Any]
    template: dict[str, Any]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Logical id -> properties, of the resources of one type."""
        found = self.template["Resources"].items()
        return {name: resource.get("Properties", {}) for name, resource in found if resource["Type"] == kind}

    @property
    def functions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Folder -> (logical id, properties)."""
        blocks = self.of_type("AWS::Serverless::Function").items()
        paths = {name: Path(str(block.get("CodeUri"))) for name, block in blocks}
        ours = {name: block for name, block in blocks if paths[name].parts[:1] == (FOLDER,)}
        return {paths[name].name: (name, block) for name, block in ours.items() if not _is_worker(block)}

    @property
    def workers(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Folder -> (logical id, properties) of the function that goes on with its tasks."""
        blocks = self.of_type("AWS::Serverless::Function").items()
        return {Path(str(block.get("CodeUri"))).name: (name, block) for name, block in blocks if _is_worker(block)}

    @property
    def tasks(self) -> frozenset[str]:
        """Folders with a handler whose calls may become tasks."""
        return frozenset(self.catalog.get("tasks", ()))

    @property
    def welcoming(self) -> frozenset[str]:
        """The endpoint, which may have a key and the table for clients of 2025, whoever its handlers are."""
        return frozenset({FRONT_DOOR}) & self.folders

    @property
    def front_door(self) -> tuple[str, dict[str, Any]] | None:
        """Logical id and properties; None where functions/mcp is missing, or offers its handlers itself."""
        return None if FRONT_DOOR in self.offering else self.functions.get(FRONT_DOOR)


def read(root: Path) -> Project:
    """Import every function of a project, and read what is said about them.

    Args:
        root: the folder of template.yaml and functions/.

    Raises:
        Problem: something of it is missing, or does not load.

    """
    written = template.read(root / template.FILE)
    with environment.applied(environment.CREDENTIALS), Functions(root / FOLDER) as loaded:
        handlers = {folder: function.handlers for folder, function in loaded.by_folder.items()}
    return Project(
        folders=frozenset(handlers),
        offering=frozenset(folder for folder, offered in handlers.items() if offered),
        asking=frozenset(
            folder for folder, offered in handlers.items() if any(made.asks or made.task for made in offered)
        ),
        keeping=frozenset(folder for folder, offered in handlers.items() if any(made.needs_table for made in offered)),
        catalog=catalogs.read(root / FOLDER),
        template=written,
    )


def complaints(project: Project) -> list[str]:
    """Say everything that does not agree, a line each."""
    return [line for claim in CLAIMS for line in claim(project)]


# ---- Claims


def every_folder_is_deployed(project: Project) -> Iterator[str]:
    """Claim that every folder of functions/ has a block in template.yaml, and every block a folder."""
    for folder in sorted(project.folders - project.functions.keys()):
        yield (
            f"functions/{folder} has no block in template.yaml: add {pascal(folder)} with CodeUri functions/{folder}/,"
            f" its Integration and its Route, and name it in the front door's policy"
        )
    for folder in sorted(project.functions.keys() - project.folders):
        yield f"template.yaml deploys functions/{folder}, but there is no functions/{folder}/app.py"
    for folder, (logical_id, block) in project.functions.items():
        if (name := block.get("FunctionName")) != {"Fn::Sub": f"${{AWS::StackName}}-{folder}"}:
            yield f"{logical_id} must have FunctionName: !Sub ${{AWS::StackName}}-{folder}, not {name}"
        if logical_id != pascal(folder):
            yield f"functions/{folder} is {logical_id} in template.yaml: call it {pascal(folder)}"


def every_folder_is_listed(project: Project) -> Iterator[str]:
    """Claim that every folder is in catalog.json, and nothing else."""
    listed = {folder for names in project.catalog.get("functions", {}).values() for folder in names.values()}
    for folder in sorted(project.folders - listed - {FRONT_DOOR}):
        yield f"functions/{folder} offers nothing in functions/mcp/catalog.json: run make catalog"
    for folder in sorted(listed - project.folders):
        yield f"functions/mcp/catalog.json lists functions/{folder}, which is gone: run make catalog"


def a_function_may_seal_if_and_only_if_it_can_ask(project: Project) -> Iterator[str]:
    """Claim that the key belongs to functions that ask, to each under its own name; and perhaps to the endpoint."""
    for folder, (logical_id, block) in sorted(project.functions.items()):
        sealing = [statement for statement in _statements(block) if any(map(_touches_keys, _actions(statement)))]
        keys = block.get("Environment", {}).get("Variables", {}).get("MCP_KMS_KEYS")
        if folder in project.asking or ((sealing or keys is not None) and folder in project.welcoming):
            if not sealing or any(_but_for_keys(one) != _but_for_keys(may_seal_as(folder)) for one in sealing):
                exactly = json.dumps(may_seal_as(folder))
                yield f"functions/{folder} asks: {logical_id} needs exactly this statement: {exactly}"
            elif loose := [key for key in _keys_of(sealing) if not _is_a_key(key)]:
                yield f"functions/{folder} asks: {logical_id} may use more than keys of yours: {loose[0]}"
            if not any(key in _keys_of(sealing or [may_seal_as(folder)]) for key in _listed_keys(keys)):
                yield f"functions/{folder} asks: {logical_id} needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"
        else:
            if sealing:
                yield f"functions/{folder} never asks: {logical_id} must have no permission for KMS{STOPPED}"
            if keys is not None:
                yield f"functions/{folder} never asks: {logical_id} must have no MCP_KMS_KEYS{STOPPED}"


def a_function_has_the_table_if_and_only_if_it_keeps_something(project: Project) -> Iterator[str]:
    """Claim that the table belongs to functions that keep something, to each the items under its own name.

    The endpoint may keep something too: what it asks clients of 2025.
    """
    for folder, (logical_id, block) in sorted(project.functions.items()):
        keeping = [statement for statement in _statements(block) if any(map(_touches_items, _actions(statement)))]
        table = block.get("Environment", {}).get("Variables", {}).get("MCP_TABLE")
        if folder in project.keeping or ((keeping or table is not None) and folder in project.welcoming):
            if keeping != [may_keep_as(folder)]:
                exactly = json.dumps(may_keep_as(folder))
                kind = "task" if folder in project.tasks else "single_use"
                needs = f"functions/{folder} keeps something: {logical_id} needs exactly this statement: {exactly}"
                yield f"{needs}; {BLOCK} {kind} {folder}"
            if table != TABLE:
                yield f"functions/{folder} keeps something: {logical_id} needs MCP_TABLE: !Ref Table"
        elif keeping or table is not None:
            yield f"functions/{folder} keeps nothing: {logical_id} must have no MCP_TABLE, nor permission for DynamoDB"


def the_table_keeps_what_is_written_and_lets_go_what_has_ended(project: Project) -> Iterator[str]:
    """Claim that the table has the key and the end that the toolkit writes, is billed by use, and stays."""
    if not project.keeping:
        return
    table, written = project.of_type(TABLE_TYPE).get(TABLE["Ref"]), project.template["Resources"].get(TABLE["Ref"], {})
    if table is None:
        yield "functions keep something: template.yaml needs a Table of type AWS::DynamoDB::Table"
        return
    for name, expected in TABLE_PROPERTIES.items():
        if table.get(name) != expected:
            yield f"Table must have {name}: {json.dumps(expected)}"
    if not str(written.get("DeletionPolicy")).startswith("Retain") or written.get("UpdateReplacePolicy") != "Retain":
        yield "Table must have DeletionPolicy and UpdateReplacePolicy Retain: without it a round could run again"


def the_front_door_may_invoke_the_others_and_nothing_else(project: Project) -> Iterator[str]:
    """Claim that the endpoint may invoke every handler, by name, and can do nothing else to others."""
    if project.front_door is None:
        return
    others = {block_id for folder, (block_id, _) in project.functions.items() if folder != FRONT_DOOR}
    front_door, block = project.front_door
    statements = _statements(block)
    own = [_but_for_keys(each) for each in (may_seal_as(FRONT_DOOR), may_keep_as(FRONT_DOOR))]  # claimed above
    statements = [each for each in statements if _but_for_keys(each) not in own and "Fn::If" not in each]
    if [_actions(statement) for statement in statements] != [[INVOKE]]:
        yield f"{front_door} must have one statement, which allows {INVOKE}"
        return
    allowed = _invoked(statements)
    for block_id in sorted(others - allowed):
        yield f"{front_door} may not invoke {block_id}: add !Sub ${{{block_id}.Arn}}${{Qualifier}} to its policy"
    for block_id in sorted(allowed - others):
        yield f"{front_door} may invoke {block_id}, which is no handler: remove it from its policy"


def the_api_may_invoke_the_functions_and_nothing_else(project: Project) -> Iterator[str]:
    """Claim that the API's role may invoke every function, by name, and nothing else, and that nobody else may."""
    role = project.of_type("AWS::IAM::Role").get(API_ROLE)
    if role is None:
        yield f"there is no {API_ROLE}: the API cannot invoke a function"
        return
    written = [policy.get("PolicyDocument", {}) for policy in role.get("Policies", [])]
    statements = _statements({"Policies": written})
    if role.get("ManagedPolicyArns") or any(_actions(statement) != [INVOKE] for statement in statements):
        yield f"{API_ROLE} must be allowed {INVOKE} alone"
    functions = {block_id for block_id, _ in project.functions.values()}
    for block_id in sorted(functions - _invoked(statements)):
        yield f"{API_ROLE} may not invoke {block_id}: add !Sub ${{{block_id}.Arn}}${{Qualifier}} to its policy"
    for block_id in sorted(_invoked(statements) - functions):
        yield f"{API_ROLE} may invoke {block_id}, which is no function of functions/: remove it from its policy"
    for name, permission in project.of_type("AWS::Lambda::Permission").items():
        if _named(permission.get("FunctionName")) in functions:
            yield f"{name} lets others than the API and the endpoint invoke a function: they could claim to be anybody"


def every_function_has_its_route_and_every_route_its_authorizer(project: Project) -> Iterator[str]:
    """Claim that every function answers at its own path, and that no path under /mcp is open."""
    found = project.of_type("AWS::ApiGatewayV2::Route").items()
    routes = {name: route for name, route in found if _is_ours(str(route.get("RouteKey")))}
    expected = {_route_key(folder): block_id for folder, (block_id, _) in project.functions.items()}
    for logical_id, route in routes.items():
        if route["RouteKey"] in OPEN:
            continue
        if {name: route.get(name) for name in AUTHORIZER} != AUTHORIZER:
            yield f"{logical_id} must carry AuthorizationType and AuthorizerId as the other routes do: it is open"
        if (key := route["RouteKey"]) not in expected:
            yield f"{logical_id} routes {key} to no function of functions/"
    for key, block_id in expected.items():
        reached = next((route for route in routes.values() if route["RouteKey"] == key), {})
        if not reached:
            yield f"{block_id} has no route: add {block_id}Route with RouteKey: {key}"
        elif reached.get("Target") != {"Fn::Sub": f"integrations/${{{block_id}Integration}}"}:
            yield f"the route {key} must go to {block_id}Integration"
        yield from _reaches(project, block_id)


def the_way_in_is_open(project: Project) -> Iterator[str]:
    """Claim that a browser's preflight and the metadata need no caller, and are there only where they are wanted."""
    if project.front_door is None:
        return
    block_id, _ = project.front_door
    resources = project.template["Resources"].values()
    routes = {one["Properties"]["RouteKey"]: one for one in resources if one["Type"] == "AWS::ApiGatewayV2::Route"}
    for key, condition in OPEN.items():
        if key not in routes:
            yield f"{block_id} has no route {key}: clients cannot find the way in"
            continue
        route, properties = routes[key], routes[key]["Properties"]
        if route.get("Condition") != condition or properties.get("AuthorizationType") != "NONE":
            yield f"the route {key} must have Condition: {condition} and AuthorizationType: NONE"
        if properties.get("Target") != {"Fn::Sub": f"integrations/${{{block_id}Integration}}"}:
            yield f"the route {key} must go to {block_id}Integration"


def _reaches(project: Project, block_id: str) -> Iterator[str]:
    integration = project.of_type("AWS::ApiGatewayV2::Integration").get(f"{block_id}Integration", {})
    ending = f":function:${{{block_id}}}${{Qualifier}}"
    if not str(_sub(integration.get("IntegrationUri"))).endswith(ending):
        yield f"{block_id}Integration must have an IntegrationUri that ends in {ending}"
    if integration.get("PayloadFormatVersion") != "2.0":
        yield f'{block_id}Integration must have PayloadFormatVersion: "2.0"'
    if integration.get("CredentialsArn") != {"Fn::GetAtt": f"{API_ROLE}.Arn"}:
        yield f"{block_id}Integration must have CredentialsArn: !GetAtt {API_ROLE}.Arn"


def functions_end_before_those_that_wait_for_them(project: Project) -> Iterator[str]:
    """Claim that a function's Timeout is under the front door's, and that under API Gateway's."""
    if project.front_door is None:
        return
    default = project.template.get("Globals", {}).get("Function", {}).get("Timeout", 3)
    seconds = {folder: block.get("Timeout", default) for folder, (_, block) in project.functions.items()}
    if seconds[FRONT_DOOR] >= API_GATEWAY_SECONDS:
        yield f"the front door's Timeout must be under API Gateway's {API_GATEWAY_SECONDS} s"
    for folder in sorted(project.functions.keys() - {FRONT_DOOR}):
        if seconds[folder] >= seconds[FRONT_DOOR]:
            yield f"functions/{folder}: Timeout {seconds[folder]} must be under the front door's {seconds[FRONT_DOOR]}"


def a_function_has_a_worker_if_and_only_if_it_has_tasks(project: Project) -> Iterator[str]:
    """Claim that tasks have who goes on with them: the same code under its own name, longer, and without a route."""
    for folder in sorted(project.tasks & project.functions.keys()):
        block_id, block = project.functions[folder]
        worker_id, worker = project.workers.get(folder, ("", {}))
        if not worker:
            yield f"functions/{folder} has tasks: add {block_id}Worker; {BLOCK} task {folder}"
            continue
        if worker.get("FunctionName") != {"Fn::Sub": f"${{AWS::StackName}}-{folder}{WORKER}"}:
            yield f"{worker_id} must have FunctionName: !Sub ${{AWS::StackName}}-{folder}{WORKER}"
        if worker.get("Environment") != block.get("Environment"):
            yield f"{worker_id} must have the Environment of {block_id}: it opens what that sealed"
        if worker.get("RecursiveLoop") != "Allow":
            yield f"{worker_id} needs RecursiveLoop: Allow, for work that takes longer than {worker.get('Timeout')} s"
        for name, each in ((block_id, block), (worker_id, worker)):
            if not any(_invokes(statement, f"{folder}{WORKER}") for statement in _statements(each)):
                ending = f"-{folder}{WORKER}${{Qualifier}}"
                yield f"{name} may not invoke a function that ends in {ending}: its tasks would wait for ever"
        yield from _asynchronously(project, worker_id)
    for folder in sorted(project.workers.keys() - project.tasks):
        yield f"{project.workers[folder][0]} works for functions/{folder}, which has no tasks"


def _asynchronously(project: Project, worker_id: str) -> Iterator[str]:
    """Lambda's own retries would run a worker again that was given up: none, for whatever the summons calls."""
    configured = project.of_type("AWS::Lambda::EventInvokeConfig").values()
    found = next((one for one in configured if one.get("FunctionName") == {"Ref": worker_id}), {})
    if found.get("MaximumRetryAttempts") != 0:
        yield f"{worker_id} needs an AWS::Lambda::EventInvokeConfig with MaximumRetryAttempts: 0"
    elif found.get("Qualifier") != WORKER_QUALIFIER:
        yield f"the EventInvokeConfig of {worker_id} needs Qualifier: !If [IsLive, live, $LATEST]"


def a_function_may_use_the_bucket_if_it_has_one(project: Project) -> Iterator[str]:
    """Claim that who may write to the bucket keeps something, and reaches the objects under its own name alone."""
    for folder, (logical_id, block) in sorted({**project.functions, **project.workers}.items()):
        blobs = block.get("Environment", {}).get("Variables", {}).get("MCP_BLOBS")
        if blobs is None:
            continue
        if folder not in project.keeping | project.welcoming:
            yield f"functions/{folder} keeps nothing: {logical_id} must have no MCP_BLOBS"
        elif may_store_as(folder, blobs) not in _optional(block):
            exactly = json.dumps(may_store_as(folder, blobs))
            yield f"{logical_id} has MCP_BLOBS, so it needs exactly this statement, !If HasBlobs: {exactly}"


CLAIMS: tuple[Callable[[Project], Iterator[str]], ...] = (
    every_folder_is_deployed,
    every_folder_is_listed,
    a_function_may_seal_if_and_only_if_it_can_ask,
    a_function_has_the_table_if_and_only_if_it_keeps_something,
    the_table_keeps_what_is_written_and_lets_go_what_has_ended,
    a_function_may_use_the_bucket_if_it_has_one,
    the_front_door_may_invoke_the_others_and_nothing_else,
    the_api_may_invoke_the_functions_and_nothing_else,
    every_function_has_its_route_and_every_route_its_authorizer,
    the_way_in_is_open,
    functions_end_before_those_that_wait_for_them,
    a_function_has_a_worker_if_and_only_if_it_has_tasks,
)


def pascal(folder: str) -> str:
    """Give a folder its logical id: update_work_item is UpdateWorkItem."""
    return "".join(word.capitalize() for word in folder.replace("-", "_").split("_"))


def may_seal_as(folder: str) -> dict[str, Any]:
    """Write the one statement about KMS that a function may have."""
    return {
        "Effect": "Allow",
        "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
        "Resource": KEY,
        "Condition": {
            "StringEquals": {
                "kms:EncryptionContext:purpose": "mcp-request-state",
                "kms:EncryptionContext:service": {"Fn::Sub": f"${{AWS::StackName}}/{folder}"},
                "kms:EncryptionContext:stage": {"Ref": "Stage"},
            },
            "ForAllValues:StringEquals": {
                "kms:EncryptionContextKeys": ["purpose", "service", "stage", "generation", "born"]
            },
            "Null": {"kms:EncryptionContextKeys": "false"},
        },
    }


def may_keep_as(folder: str) -> dict[str, Any]:
    """Write the one statement about DynamoDB that a function may have."""
    return {
        "Effect": "Allow",
        "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"],
        "Resource": {"Fn::GetAtt": "Table.Arn"},
        "Condition": {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": {"Fn::Sub": f"${{AWS::StackName}}/{folder}/*"}},
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    }


def may_store_as(folder: str, bucket: object) -> dict[str, Any]:
    """Write the one statement about S3 that a function may have: no list, and none but its own objects."""
    named = f"arn:${{AWS::Partition}}:s3:::${{Bucket}}/${{AWS::StackName}}/{folder}/*"
    return {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": {"Fn::Sub": [named, {"Bucket": bucket}]},
    }


def _optional(block: dict[str, Any]) -> list[Any]:
    """Return the statements that a function has if the deployment has a bucket."""
    branches = [statement.get("Fn::If", []) for statement in _statements(block)]
    return [branch[1] for branch in branches if branch[:1] == ["HasBlobs"]]


def _is_worker(block: dict[str, Any]) -> bool:
    return str(_sub(block.get("FunctionName"))).endswith(WORKER)


def _invokes(statement: dict[str, Any], function: str) -> bool:
    named = [str(_sub(resource)) for resource in _flat(statement.get("Resource", []))]
    # by the alias, where calls go to it: a worker is of the version that sealed what it opens
    return _actions(statement) == [INVOKE] and any(name.endswith(f"-{function}${{Qualifier}}") for name in named)


def _is_ours(route_key: str) -> bool:
    path = route_key.rpartition(" ")[2]
    return path == "/mcp" or path.startswith("/mcp/")


def _route_key(folder: str) -> str:
    return "ANY /mcp" if folder == FRONT_DOOR else f"ANY /mcp/{folder}"


def _invoked(statements: list[dict[str, Any]]) -> set[str]:
    return {_named(resource) for statement in statements for resource in _flat(statement.get("Resource", []))}


def _named(resource: object) -> str:
    """Say which function is meant: !Sub ${X.Arn}${Qualifier}, !GetAtt X.Arn, !Ref X."""
    match resource:
        case {"Fn::Sub": str(name)}:
            return name.removesuffix("${Qualifier}").removeprefix("${").removesuffix("}").removesuffix(".Arn")
        case {"Fn::GetAtt": str(name)} | {"Ref": str(name)}:
            return name.removesuffix(".Arn").removesuffix(".Alias")
    return str(resource)


# ---- Keys: one as a rule, several while one is rotated


def _but_for_keys(statement: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in statement.items() if name != "Resource"}


def _keys_of(statements: list[dict[str, Any]]) -> list[Any]:
    return [key for statement in statements for key in _flat(statement.get("Resource", []))]


def _is_a_key(resource: object) -> bool:
    match resource:
        case {"Fn::GetAtt": str(name)}:
            return name.endswith(".Arn")
        case {"Ref": str()}:
            return True
        case str(arn) | {"Fn::Sub": str(arn)}:
            return KEY_ARN.fullmatch(arn) is not None
    return False


def _listed_keys(variable: object) -> list[Any]:
    """Take MCP_KMS_KEYS apart: one key, or a list that is joined."""
    match variable:
        case {"Fn::Join": [",", list(keys)]}:
            return keys
        case {"Fn::Sub": str(text)}:
            return [{"Fn::GetAtt": found} for found in re.findall(r"\$\{(\w+\.Arn)\}", text)]
    return [variable]


def _flat(value: Any) -> list[Any]:  # noqa: ANN401 - IAM writes one as itself
    listed = _listed(value)
    return [one for each in listed for one in (_flat(each) if isinstance(each, list) else [each])]


def _sub(value: object) -> object:
    return value.get("Fn::Sub") if isinstance(value, dict) else value


def _statements(block: dict[str, Any]) -> list[dict[str, Any]]:
    policies = block.get("Policies", [])
    inline = [policy for policy in (policies if isinstance(policies, list) else [policies]) if isinstance(policy, dict)]
    return [statement for policy in inline for statement in _listed(policy.get("Statement", []))]


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - IAM writes one as itself
    return value if isinstance(value, list) else [value]


def _actions(statement: dict[str, Any]) -> list[str]:
    return _listed(statement.get("Action", []))


def _touches_items(action: str) -> bool:
    return action.startswith("dynamodb:") or action == "*"


def _touches_keys(action: str) -> bool:
    return action.startswith("kms:") or action == "*"
