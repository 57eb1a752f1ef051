"""The services that a function calls on AWS, each over HTTP on loopback: KMS in another process, and Invoke."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.doubles import keyfile
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.lambdas.invoke_api import InvokeApi
from mcp_functions_harness.lambdas.service import MAX_PAYLOAD, Lambdas, Outcome
from mcp_functions_harness.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


class Kms(NamedTuple):
    """A KMS with one key."""

    url: str
    arn: str


@contextmanager
def kms() -> Iterator[Kms]:
    """Run moto's KMS in another process, so that no figure includes it."""
    command = [sys.executable, "-m", "tests.benchmarks.services"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield Kms(*json.loads(running.stdout.readline()))
        finally:
            running.communicate()  # its stdin closes, and so it ends


@contextmanager
def invoke(folders: Collection[str], run: Callable[[str, bytes], bytes]) -> Iterator[str]:
    """Serve Lambda's Invoke API for some functions.

    Args:
        folders: of the functions.
        run: answers an event (JSON) of a folder with a response (JSON).

    Yields:
        its URL.

    """
    lambdas = Lambdas(
        folders,
        lambda folder, event: Outcome(payload=run(folder, event), request_id="-", milliseconds=0.0),
    )
    with Loopback(max_body=2 * MAX_PAYLOAD) as loopback:
        loopback.start(InvokeApi(lambdas).answer)
        yield loopback.url


def main() -> None:
    """Be the KMS, until stdin closes."""
    with tempfile.TemporaryDirectory() as folder, Loopback(max_body=MAX_REQUEST) as loopback:
        api = KmsApi(keyfile.load(Path(folder)))
        loopback.start(api.answer)
        sys.stdout.write(json.dumps([loopback.url, api.arn]) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
