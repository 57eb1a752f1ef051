"""Checks what a function may use: the KMS key, the table and the bucket, each under the function's own name.

policy    opens                    for a function that
MaySeal   the key                  asks its user: it encrypts the state of the call, and gives it to the client
MayKeep   the table, the bucket    writes to the table; this function needs MaySeal too
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from mcp_functions_harness.checks import iam
from mcp_functions_harness.checks.project import Project
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN

# The ARN of one key: without a wildcard, and of no alias.
KEY_ARN = re.compile(r"arn:(aws[a-z-]*|\$\{AWS::Partition\}):kms:[^*?]+:key/[\w-]+")
WRITE_BLOCK = "or run: mcp-functions block --write"
# Clients still hold states of a function that asked before. It must decrypt them until the last one has expired.
STOPPED_ASKING = " (if it asked until now: keep `elicit: Elicit` in its signature, unused, for one answer_within)"


def a_function_has_the_policies_that_its_handlers_need(project: Project) -> Iterator[str]:
    """Check that a function has MaySeal and MayKeep if it needs them, and only then.

    The endpoint may have both in any case: it needs them to answer clients of the protocol of 2025.
    """
    for folder, block in sorted(project.functions.items()):
        needed = _needed_policies(project, folder)
        write = "" if block.role_id else f", {WRITE_BLOCK} {folder}"
        for policy in sorted(needed - block.access):
            yield f"functions/{folder} needs {policy}: add !Ref {policy} to {block.place_of_policies}{write}"
        if folder == FRONT_DOOR:
            continue
        for policy in sorted(block.access - needed):
            reason = f"never asks{STOPPED_ASKING}" if policy == iam.SEAL else "keeps nothing"
            yield f"functions/{folder} {reason}: remove !Ref {policy} from {block.place_of_policies}{write}"


def a_function_is_tagged_with_its_own_name(project: Project) -> Iterator[str]:
    """Check the tag by which the two policies know a function.

    With the tag of another function, it could decrypt that function's states.
    """
    for block in project.blocks:
        tag = block.tag
        needs_no_tag = tag is None and not block.access
        if tag != block.folder and not needs_no_tag and block.role_id:
            yield f"{block.role_id} must have Tags with Key {iam.TAG} and Value {block.folder}, not {tag}"
        elif tag != block.folder and not needs_no_tag:
            expected = f"{iam.TAG}: {block.folder}"
            yield f"{block.logical_id} must have Tags: {expected}, not {tag}, {WRITE_BLOCK} {block.folder}"


def the_two_policies_open_what_is_under_a_functions_own_name(project: Project) -> Iterator[str]:
    """Check the statements of MaySeal and MayKeep, which every function shares."""
    if not (project.asking | project.keeping):
        return
    policies = project.of_type("AWS::IAM::ManagedPolicy")
    sealing = iam.statements(policies.get(iam.SEAL, {}).get("PolicyDocument"))
    keeping = iam.statements(policies.get(iam.KEEP, {}).get("PolicyDocument"))
    (may_seal,) = iam.scaffold_statements(iam.SEAL)
    # A project may have other keys, so the resource may differ. All else must be as `init` writes it.
    if [{**statement, "Resource": may_seal["Resource"]} for statement in sealing] != [may_seal]:
        yield f"{iam.SEAL} must have exactly this statement: {json.dumps(may_seal)}"
    else:
        yield from _check_keys(project, iam.resources(sealing[0]))
    allowed = iam.scaffold_statements(iam.KEEP)
    lacks_first = keeping[:1] != allowed[:1]  # for the table; those for the bucket may be missing
    has_others = any(statement not in allowed for statement in keeping)
    if project.keeping and (lacks_first or has_others):
        yield f"{iam.KEEP} must have no statements but these, and the first: {json.dumps(allowed)}"


def the_table_keeps_what_is_written_and_deletes_what_has_expired(project: Project) -> Iterator[str]:
    """Check that the table has the toolkit's key and expiry, is billed by use, and outlives the stack."""
    if not project.keeping:
        return
    table = project.of_type("AWS::DynamoDB::Table").get(iam.TABLE["Ref"])
    if table is None:
        keeping = f"functions/{min(project.keeping)} keeps something"
        yield f"{keeping}, and template.yaml has no Table: mcp-functions add table"
        return
    if project.variable("MCP_TABLE") != iam.TABLE:
        yield "functions keep something: Globals needs MCP_TABLE: !Ref Table"
    for name, expected in iam.scaffold_properties(iam.TABLE["Ref"]).items():
        if name != "Tags" and table.get(name) != expected:
            yield f"Table must have {name}: {json.dumps(expected)}"
    resource = project.template["Resources"][iam.TABLE["Ref"]]
    survives_deletion = str(resource.get("DeletionPolicy")).startswith("Retain")
    if not survives_deletion or resource.get("UpdateReplacePolicy") != "Retain":
        yield "Table must have DeletionPolicy and UpdateReplacePolicy Retain: without it a round could run again"


def _needed_policies(project: Project, folder: str) -> set[str]:
    if folder in project.keeping:
        return {iam.SEAL, iam.KEEP}
    if folder in project.asking or folder == SIGN_IN:  # the sign-in encrypts its state too
        return {iam.SEAL}
    return set()


def _check_keys(project: Project, allowed: list[Any]) -> Iterator[str]:
    """Check the keys of MaySeal: each is a single key, and one of them is in MCP_KMS_KEYS."""
    patterns = [key for key in allowed if not _is_one_key(key)]
    if patterns:
        yield f"{iam.SEAL} opens more than your own keys: {patterns[0]}"
    if not any(key in allowed for key in _listed_keys(project.variable("MCP_KMS_KEYS"))):
        yield "functions ask: Globals needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"


def _is_one_key(resource: object) -> bool:
    match resource:
        case {"Fn::GetAtt": str(name)}:
            return name.endswith(".Arn")
        case {"Ref": str()}:
            return True
        case str(arn) | {"Fn::Sub": str(arn)}:
            return KEY_ARN.fullmatch(arn) is not None
    return False


def _listed_keys(variable: object) -> list[Any]:
    """List the keys of MCP_KMS_KEYS: usually one, and several while one is rotated."""
    match variable:
        case {"Fn::Join": [",", list(keys)]}:
            return keys
        case {"Fn::Sub": str(text)}:
            return [{"Fn::GetAtt": attribute} for attribute in re.findall(r"\$\{(\w+\.Arn)\}", text)]
    return [variable]
