"""`open`: decrypts a requestState, and says what is in it and why a server refuses it.

A requestState is the encrypted ("sealed") state of an unfinished call, which a client keeps between two requests. Its
key opens it only for the service, the stage and the generation for which it was sealed.
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from mcp_functions.local import environment
from mcp_functions.local.commands import options
from mcp_functions.local.harness import STATE_DIR
from mcp_functions.local.inspection import explain, key_source
from mcp_functions.local.inspection.explain import Request
from mcp_functions.local.lambdas import functions
from mcp_functions.local.problems import Problem, stop
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.keys import Scope

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mcp_functions.local.inspection.key_source import KeySource

AWS_STAGE = "prod"
STDIN = "-"


class Opening(TypedDict):
    """The options: the key, and the request that was refused."""

    functions: Path
    show_state: bool
    key: tuple[str, ...]
    service: str | None
    stage: str | None
    generation: str
    function: str | None
    method: str | None
    target: str | None
    arguments: str | None
    principal: tuple[str, str, str] | None
    nobody: bool
    answer_within: int | None


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
def command(token: str, **chosen: Unpack[Opening]) -> int:
    """Explain why a server refuses a requestState: 0, there is no reason; 1, there is one.

    TOKEN is a requestState (ks1.…), or - to read it from stdin.
    """
    text = sys.stdin.read().strip() if token == STDIN else token
    now = time.time()
    explanation = explain.explain_public_part(text, now=now)
    if not explanation.reasons:
        request = _request(chosen)
        try:
            with _keyring(chosen) as keyring:
                explanation = explain.explain(text, keyring, request, now=now, show_state=chosen["show_state"])
        except Problem:
            for line in explanation.lines:  # these lines need no key
                click.echo(line)
            raise
    click.echo(str(explanation))
    return 1 if explanation.reasons else 0


def _request(chosen: Opening) -> Request:
    """Return what the options say about the refused request."""
    request = Request(answer_within=chosen["answer_within"])
    if chosen["method"]:
        request["method"] = chosen["method"]
    if chosen["target"] is not None:
        request["target"] = chosen["target"]
    if chosen["arguments"] is not None:
        request["arguments"] = _json(chosen["arguments"])
    if chosen["principal"] or chosen["nobody"]:
        request["principal"] = Principal(*chosen["principal"]) if chosen["principal"] else None
    return request


def _json(text: str) -> object:
    try:
        return json_reader.loads(text)  # the server's reader, because the digest of the arguments is compared
    except ParseError:
        stop("--arguments is not JSON: give params.arguments as the client sent them, in quotes")


def _keyring(chosen: Opening) -> AbstractContextManager[KeySource]:
    stage = chosen["stage"] or (AWS_STAGE if chosen["key"] else key_source.STAGE)
    service = chosen["service"]
    if chosen["key"]:
        if not service:
            stop("--key needs --service: a data key opens for one <stack>/<function>, or for a shared audience")
        arns = [arn.strip() for value in chosen["key"] for arn in value.split(",")]
        return nullcontext(key_source.aws_keys(arns, Scope(service, stage, chosen["generation"])))
    if not service and chosen["function"]:
        service = f"{environment.STACK}/{chosen['function']}"
    scopes = [Scope(name, stage, chosen["generation"]) for name in _services(chosen["functions"], service)]
    return key_source.local_key(STATE_DIR, scopes, scopes[0] if service else None)


def _services(directory: Path, first: str | None) -> list[str]:
    """List the services that may have sealed a state on this machine, with the one that the options name first."""
    if first and not directory.is_dir():
        return [first]
    services = [f"{environment.STACK}/{app.parent.name}" for app in functions.find(directory)]
    if not first:
        return services
    return [first, *(service for service in services if service != first)]
