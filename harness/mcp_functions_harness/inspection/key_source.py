"""The keys that open a `requestState` for its inspection: the harness's own key, or KMS keys of an AWS account.

A `requestState`, or token, opens only with the KMS key that has encrypted ("wrapped") its data key, and only for its
scope: the function, the stage and the generation for which it was made.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mcp_functions.aws import CallLimits, boto3_client
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.kms import KmsKey, Wrapping
from mcp_functions.seal.token_format import MAX_TOKEN_CHARS
from mcp_functions_harness import environment
from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.loopback import start_server
from mcp_functions_harness.problems import Problem

ARN_PARTS = 6  # arn:partition:kms:region:account:key/id
STAGE = "local"  # the stage and the generation of the harness
GENERATION = "1"
FOR_EVER = 100 * 366 * 86_400  # 100 years in seconds


class KeySource(NamedTuple):
    """The keys and the scopes with which a token may be opened."""

    wrappings: Sequence[Wrapping]  # KMS keys, which unwrap data keys
    scopes: Sequence[Scope]  # the scopes to try, in this order
    expected: Scope | None  # the scope of the refused request, if it is known


def local_scope(folder: str) -> Scope:
    """Return the scope in which a function of the harness seals its states."""
    return Scope(f"{environment.STACK}/{folder}", STAGE, GENERATION)


def unlimited_envelope(wrapping: Wrapping, scope: Scope, *, now: Callable[[], float]) -> Envelope:
    """Return an envelope that opens states of any size and age."""
    return Envelope(Keyring([wrapping], scope, now=now), max_chars=MAX_TOKEN_CHARS, max_age=FOR_EVER)


@contextmanager
def local_key(state_dir: Path, scopes: Sequence[Scope], expected: Scope | None) -> Iterator[KeySource]:
    """Provide the harness's key until the end of the block, through a KMS on loopback.

    Raises:
        Problem: the key is missing in `state_dir`, or damaged.
    """
    file = state_dir / keyfile.FILE
    if not file.exists():
        raise Problem(f"there is no {file}: start where the harness ran, or name the keys with --key")
    with ExitStack() as stack:
        api = KmsApi(keyfile.load(state_dir))
        url = start_server(stack, api.answer, MAX_REQUEST)
        endpoints = environment.endpoints(kms=url, invoke=url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | endpoints))
        yield KeySource([KmsKey(api.arn)], scopes, expected)


def aws_keys(arns: Sequence[str], scope: Scope) -> KeySource:
    """Provide KMS keys with the user's own credentials, each in its Region.

    Raises:
        Problem: an ARN does not name a key.
    """
    for arn in arns:
        if len(arn.split(":")) != ARN_PARTS or ":key/" not in arn:
            raise Problem(f"--key {arn}: give the ARN of a key, as MCP_KMS_KEYS has it (arn:aws:kms:...:key/...)")
    limits = CallLimits(2, 5, 2)
    keys = [KmsKey(arn, partial(boto3_client, "kms", limits, arn.split(":")[3])) for arn in arns]
    return KeySource(keys, [scope], scope)
