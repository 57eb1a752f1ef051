"""The command `open TOKEN` and its options."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from mcp_functions.local import environment
from mcp_functions.local.harness import STATE_DIR
from mcp_functions.local.lambdas import functions
from mcp_functions.local.problems import Problem
from mcp_functions.protocol import json_reader
from mcp_functions.protocol.constants import CALLS
from mcp_functions.protocol.errors import ParseError
from mcp_functions.protocol.messages import Principal

if TYPE_CHECKING:
    import argparse
    from argparse import _SubParsersAction
    from contextlib import AbstractContextManager
    from pathlib import Path

    from mcp_functions.local.inspection.explain import Request
    from mcp_functions.local.inspection.key_source import KeySource

LOCAL_STAGE, AWS_STAGE = "local", "prod"
STDIN = "-"


def add_command(commands: _SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add `open` to the command line."""
    opened = commands.add_parser("open", parents=[common], help="explain why a server refuses a requestState")
    opened.add_argument("token", metavar="TOKEN", help="a requestState (ks1.…), or - to read it from stdin")
    opened.add_argument("--show-state", action="store_true", help="print the user's answers and the state, too")
    key = opened.add_argument_group("the key (default: the harness's own, in .mcp-functions/)")
    key.add_argument("--key", action="append", default=[], metavar="ARN", help="one of MCP_KMS_KEYS; may be repeated")
    key.add_argument("--service", metavar="S", help="<stack>/<function>, or the audience that serve() names")
    key.add_argument("--stage", metavar="S", help=f"default: {AWS_STAGE} with --key, else {LOCAL_STAGE}")
    key.add_argument("--generation", default="1", metavar="G", help="default: 1")
    request = opened.add_argument_group("the request that was refused, to compare with")
    request.add_argument("--function", metavar="NAME", help="the function's folder; with --key, --service says it")
    request.add_argument("--method", choices=CALLS, help="what it called")
    request.add_argument("--target", metavar="NAME", help="the name of the tool or prompt, or the URI")
    request.add_argument("--arguments", metavar="JSON", help="params.arguments")
    request.add_argument("--principal", nargs=3, metavar=("ISS", "SUB", "CLIENT"), help='who sent it; CLIENT may be ""')
    request.add_argument("--nobody", action="store_true", help="it came without a principal (AuthMode none)")
    request.add_argument("--answer-within", type=int, metavar="SECONDS", help="the function's answer_within")
    opened.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command: 0 if there is no reason to refuse the token, 1 if there is one."""
    from mcp_functions.local.inspection import explain  # noqa: PLC0415 - only this command needs cryptography

    text, now = sys.stdin.read().strip() if options.token == STDIN else options.token, time.time()
    explained = explain.shown(text, now=now)
    if not explained.reasons:
        request = _request(options)
        try:
            with _keyring(options) as keyring:
                explained = explain.explain(text, keyring, request, now=now, show_state=options.show_state)
        except Problem:
            sys.stdout.write("".join(f"{line}\n" for line in explained.lines))  # these lines need no key
            raise
    sys.stdout.write(f"{explained}\n")
    return 1 if explained.reasons else 0


def _request(options: argparse.Namespace) -> Request:
    from mcp_functions.local.inspection.explain import UNKNOWN, Request  # noqa: PLC0415 - see `run`

    principal = Principal(*options.principal) if options.principal else None
    return Request(
        method=options.method or UNKNOWN,
        target=UNKNOWN if options.target is None else options.target,
        arguments=UNKNOWN if options.arguments is None else _json(options.arguments),
        principal=principal if principal or options.nobody else UNKNOWN,
        answer_within=options.answer_within,
    )


def _json(text: str) -> object:
    try:
        return json_reader.loads(text)  # like the server, because the digest is compared
    except ParseError:
        unread = "--arguments is not JSON: give params.arguments as the client sent them, in quotes"
        raise Problem(unread) from None


def _keyring(options: argparse.Namespace) -> AbstractContextManager[KeySource]:
    from mcp_functions.local.inspection import key_source  # noqa: PLC0415 - see `run`
    from mcp_functions.seal.data_keys import Scope  # noqa: PLC0415 - see `run`

    stage = options.stage or (AWS_STAGE if options.key else LOCAL_STAGE)
    if options.key:
        if not options.service:
            missing = "--key needs --service: a data key opens for one <stack>/<function>, or for a shared audience"
            raise Problem(missing)
        arns = [arn.strip() for listed in options.key for arn in listed.split(",")]
        return nullcontext(key_source.aws_keys(arns, Scope(options.service, stage, options.generation)))
    named = options.service or (f"{environment.STACK}/{options.function}" if options.function else None)
    scopes = [Scope(service, stage, options.generation) for service in _services(options.functions, named)]
    return key_source.local_key(STATE_DIR, scopes, scopes[0] if named else None)


def _services(directory: Path, named: str | None) -> list[str]:
    """List the services that may have sealed a state on this machine, the named one first."""
    if named and not directory.is_dir():
        return [named]
    others = [f"{environment.STACK}/{app.parent.name}" for app in functions.find(directory)]
    return [named, *(service for service in others if service != named)] if named else others
