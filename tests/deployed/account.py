"""The account that the suite deploys into: MiniStack on this machine, or with DEPLOYED_TO=aws the shell's own account.

    DEPLOYED_TO=aws AWS_PROFILE=… AWS_REGION=… make deployed

In the shell's account no process can be killed from outside. There, functions get new environments by a change of
their description, and the tests that kill a worker or that need the emulator's host names are skipped.
"""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest

from mcp_functions_harness.emulator import front, process
from mcp_functions_harness.emulator.front import make_user
from tests.deployed.certificate import write_certificate
from tests.deployed.tls_front import tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from mcp_functions_harness.emulator.process import Emulator

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-ministack" / "bin" / "python"
LISTEN = "0A"  # of a socket in /proc/net/tcp
REAL = os.environ.get("DEPLOYED_TO") == "aws"
HOSTS = (
    f"*.execute-api.{process.DOMAIN}",
    f"cognito-idp.{process.DOMAIN}",
    "*.auth.us-east-1.amazoncognito.com",
)
MAY_CALL = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
MAY_ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}


@dataclass(frozen=True)
class Account:
    """An account, as its administrator and as a caller of its API.

    Attributes:
        session: of the administrator.
        caller: of somebody who may call APIs, and nothing else.
        environment: variables for the administrator's programs.
        root: variables for the SAM CLI. Its bucket refuses plain HTTP, except of the emulator's root, who may all.
        emulator: None for a real account.
        tls_port: answers for port 443 of AWS's host names, for programs with `names`.
        certificate: that programs with `names` must trust.
    """

    session: boto3.Session
    caller: boto3.Session
    environment: dict[str, str]
    root: dict[str, str]
    emulator: Emulator | None
    tls_port: int = 443
    certificate: Path | None = None

    def client(self, service: str, session: boto3.Session | None = None) -> Any:  # noqa: ANN401 - boto3's clients
        """Make a client of a service; by default the administrator's."""
        made: Any = session or self.session
        return made.client(service, endpoint_url=self.emulator.url if self.emulator else None)

    def served(
        self, endpoint: str, *, signed: bool = True, before: Callable[[bytes], object] = lambda _body: None
    ) -> AbstractContextManager[str]:
        """Serve the API of an endpoint at a URL on this machine, which signs for the caller.

        Args:
            endpoint: the output of the stack.
            signed: False for a caller without credentials.
            before: called with the body of each request, before it is sent.
        """
        target = self.emulator.address if self.emulator else None
        credentials = self.caller.get_credentials()
        assert credentials
        caller = front.Caller(credentials, str(self.session.region_name)) if signed else None
        return front.signing(target, endpoint, caller, before=before)

    def download(self, url: str) -> bytes:
        """Read what a service offers at a URL, of which the emulator serves each under its own address."""
        if self.emulator:
            parts = urlsplit(url)
            url = f"{self.emulator.url}{parts.path}?{parts.query}"
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310 - of a service
            return bytes(response.read())

    def processes(self, *functions: str) -> list[int]:
        """Return the processes of functions, by their names."""
        assert self.emulator, "a real account shows no process"
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it has ended, or is another user's
                variables = path.read_bytes().split(b"\0")
                own = f"AWS_ENDPOINT_URL={self.emulator.url}".encode() in variables
                if own and any(f"AWS_LAMBDA_FUNCTION_NAME={name}".encode() in variables for name in functions):
                    found.append(int(path.parent.name))
        return found

    def kill(self, *functions: str) -> int:
        """End every process of functions, so that the next event meets a cold start; how many there were."""
        if self.emulator is None:
            self._renew(functions)
            return len(functions)
        found = self.processes(*functions)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_runs, found)):  # or the next event goes to a process that is about to end
            time.sleep(0.01)
        return len(found)

    def _renew(self, functions: Sequence[str]) -> None:
        client = self.client("lambda")
        for name in functions:
            client.update_function_configuration(FunctionName=name, Description=os.urandom(4).hex())
        for name in functions:
            client.get_waiter("function_updated_v2").wait(FunctionName=name)


def _runs(pid: int) -> bool:
    """Whether a process has not ended: its parent learns of the end when the last thread is gone, not the first."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z" or threads > 1


@contextmanager
def opened(folder: Path) -> Iterator[Account]:
    """Open the account for a block; `folder` gets the certificate of the emulator."""
    if REAL:
        session = boto3.Session()
        yield Account(session, session, dict(os.environ), dict(os.environ), None)
        return
    if not PYTHON.exists():
        missing = "no .venv-ministack: make deployed prepares it (it needs Python 3.13)"
        (pytest.fail if os.environ.get("CI", "") not in {"", "false"} else pytest.skip)(missing)
    with running(folder) as (emulator, tls_port, certificate):
        root = boto3.Session("test", "test", region_name=process.REGION)
        iam: Any = root.client("iam", endpoint_url=emulator.url)
        administrator, caller = make_user(iam, "administrator", MAY_ALL), make_user(iam, "caller", MAY_CALL)
        keys = {
            "AWS_ACCESS_KEY_ID": administrator.access_key,
            "AWS_SECRET_ACCESS_KEY": administrator.secret_key,
        }
        yield Account(
            boto3.Session(administrator.access_key, administrator.secret_key, region_name=process.REGION),
            boto3.Session(caller.access_key, caller.secret_key, region_name=process.REGION),
            {**emulator.environment, **keys},
            emulator.environment,
            emulator,
            tls_port,
            certificate,
        )


@contextmanager
def running(folder: Path) -> Iterator[tuple[Emulator, int, Path]]:
    """Run MiniStack, with a front that answers for AWS's host names."""
    certificate = write_certificate(folder / "aws.pem", *HOSTS)
    started: list[Emulator] = []
    with tls(lambda: started[0].address, certificate) as port:
        trusted = {"SSL_CERT_FILE": str(certificate), "EMULATOR_TLS_PORT": str(port)}
        with process.running(PYTHON, trusted) as emulator:
            started.append(emulator)
            yield emulator, port, certificate


def listening(pid: int) -> list[str]:
    """Return the addresses on which a process listens: "127.0.0.1:4566", others as Linux writes them."""
    links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    tables = [Path(f"/proc/net/{name}").read_text(encoding="utf-8") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    found = [fields[1] for fields in rows if fields[3] == LISTEN and fields[9] in inodes]
    return [re.sub(r"^0100007F:(.*)", lambda match: f"127.0.0.1:{int(match[1], 16)}", one) for one in found]
