"""`open`: decrypts a requestState, and says what is in it and why a server refuses it.

A requestState is the encrypted ("sealed") state of an unfinished call, which a client keeps between two requests. It
opens only with its KMS key, and only for its scope: a service (`<stack>/<function>`), a stage and a generation.
"""

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

import click

from mcp_functions.protocol import json_reader
from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.keys import Scope
from mcp_functions_harness import environment
from mcp_functions_harness.commands import options
from mcp_functions_harness.harness import STATE_DIR
from mcp_functions_harness.inspection import explain, key_source
from mcp_functions_harness.inspection.claims_check import RefusedRequest
from mcp_functions_harness.inspection.key_source import KeySource
from mcp_functions_harness.lambdas import functions
from mcp_functions_harness.problems import Problem

AWS_STAGE = "prod"  # the default stage with --key
STDIN = "-"


class OpenOptions(TypedDict):
    """The options of the command."""

    functions: Path
    show_state: bool
    # The key and the scope.
    key: tuple[str, ...]  # ARNs of KMS keys; () for the harness's own key
    service: str | None
    stage: str | None
    generation: str
    function: str | None  # the folder of the function
    # The request that was refused; None where it is not known.
    method: str | None
    target: str | None
    arguments: str | None  # JSON
    principal: tuple[str, str, str] | None  # issuer, subject, client
    nobody: bool
    answer_within: int | None  # seconds


@click.command("open")
@click.argument("token")
@options.functions
@click.option("--show-state", is_flag=True, help="Print the user's answers and the state, too.")
@click.option("--key", multiple=True, metavar="ARN", help="One of MCP_KMS_KEYS. Default: the harness's own key.")
@click.option("--service", metavar="S", help="<stack>/<function>, or the audience that serve() names.")
@click.option("--stage", metavar="S", help=f"Default: {AWS_STAGE} with --key, else {key_source.STAGE}.")
@click.option("--generation", default="1", metavar="G", help="Default: 1.")
@click.option("--function", metavar="NAME", help="The function's folder; with --key, --service says it.")
@click.option("--method", type=click.Choice(list(CALL_METHODS)), help="What the refused request called.")
@click.option("--target", metavar="NAME", help="The name of its tool or prompt, or its URI.")
@click.option("--arguments", metavar="JSON", help="Its params.arguments.")
@click.option("--principal", nargs=3, metavar="ISS SUB CLIENT", help='Who sent it; CLIENT may be "".')
@click.option("--nobody", is_flag=True, help="It came without a principal (AuthMode none).")
@click.option("--answer-within", type=int, metavar="SECONDS", help="The function's answer_within.")
def command(token: str, **chosen: Unpack[OpenOptions]) -> int:
    """Explain why a server refuses a requestState: 0, there is no reason; 1, there is one.

    TOKEN is a requestState (ks1.…), or - to read it from stdin.
    """
    text = sys.stdin.read().strip() if token == STDIN else token
    now = time.time()
    explanation = explain.explain_public_part(text, now=now)
    if not explanation.reasons:
        request = _make_request(chosen)
        try:
            with _keys(chosen) as keys:
                explanation = explain.explain(text, keys, request, now=now, show_state=chosen["show_state"])
        except Problem:  # the key cannot be used
            for line in explanation.lines:  # of the public part, which needs no key
                click.echo(line)
            raise
    click.echo(str(explanation))
    return 1 if explanation.reasons else 0


def _make_request(chosen: OpenOptions) -> RefusedRequest:
    """Return the refused request. A part that no option names is missing, and is not compared."""
    request = RefusedRequest(answer_within=chosen["answer_within"])
    if chosen["method"]:
        request["method"] = chosen["method"]
    if chosen["target"] is not None:
        request["target"] = chosen["target"]
    if chosen["arguments"] is not None:
        try:  # the server's reader, because the digest of the arguments is compared
            request["arguments"] = json_reader.loads(chosen["arguments"])
        except ParseError:
            raise Problem("--arguments is not JSON: give params.arguments as the client sent them, in quotes") from None
    if chosen["nobody"]:
        request["principal"] = None
    if chosen["principal"]:
        request["principal"] = Principal(*chosen["principal"])
    return request


def _keys(chosen: OpenOptions) -> AbstractContextManager[KeySource]:
    """Return the keys and scopes that the options name, for a block."""
    if not chosen["key"]:
        return _harness_key(chosen)
    service = chosen["service"]
    if not service:
        raise Problem("--key needs --service: a data key opens for one <stack>/<function>, or for a shared audience")
    scope = Scope(service, chosen["stage"] or AWS_STAGE, chosen["generation"])
    arns = [arn.strip() for value in chosen["key"] for arn in value.split(",")]
    return nullcontext(key_source.aws_keys(arns, scope))


def _harness_key(chosen: OpenOptions) -> AbstractContextManager[KeySource]:
    """Return the harness's key. The scope of every function is tried, first the scope that the options name."""
    expected_service = chosen["service"]
    if not expected_service and chosen["function"]:
        expected_service = f"{environment.STACK}/{chosen['function']}"
    services = [expected_service] if expected_service else []
    if not expected_service or chosen["functions"].is_dir():
        services += [f"{environment.STACK}/{app.parent.name}" for app in functions.find(chosen["functions"])]
    stage = chosen["stage"] or key_source.STAGE
    scopes = [Scope(service, stage, chosen["generation"]) for service in dict.fromkeys(services)]
    return key_source.local_key(STATE_DIR, scopes, scopes[0] if expected_service else None)
