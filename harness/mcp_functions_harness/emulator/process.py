"""Starts MiniStack in its own environment, on a free port of 127.0.0.1, with a temporary folder of its own."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp_functions_harness.loopback import HOST
from mcp_functions_harness.problems import Problem

LAUNCHER = Path(__file__).parent / "launcher.py"
REGION = "us-east-1"
ACCOUNT = "000000000000"
DOMAIN = f"{REGION}.amazonaws.com"  # of the hosts that MiniStack answers for
ROOT_KEY = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}  # of the administrator
START_SECONDS = 60
STOP_SECONDS = 20


@dataclass(frozen=True)
class Emulator:
    """A MiniStack that runs."""

    url: str  # where AWS's services answer
    pid: int  # its process, whose children are the functions
    log: Path  # what it has written

    @property
    def environment(self) -> dict[str, str]:
        """The variables that send AWS's clients to it, as its administrator."""
        return {**ROOT_KEY, "AWS_ENDPOINT_URL": self.url, "AWS_DEFAULT_REGION": REGION, "AWS_REGION": REGION}

    @property
    def address(self) -> tuple[str, int]:
        """Its host and port."""
        host, _colon, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)


@contextmanager
def running(python: Path, variables: Mapping[str, str] | None = None) -> Iterator[Emulator]:
    """Run MiniStack for a block, by the interpreter of its environment, with more variables.

    Raises:
        Problem: it does not start.
    """
    port = _free_port()
    url = f"http://{HOST}:{port}"
    with TemporaryDirectory(prefix="emulator-") as folder, _deletable(folder):
        log = Path(folder) / "ministack.log"
        settings = {**_settings(folder, port), **(variables or {})}
        with log.open("wb") as written:
            process = subprocess.Popen(
                [python, LAUNCHER], cwd=folder, env=settings, stdout=written, stderr=written, start_new_session=True
            )
        try:
            _wait(process, url, log)
            yield Emulator(url, process.pid, log)
        finally:
            _stop(process)


def _settings(folder: str, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "TMPDIR": folder,
        "BIND_HOST": HOST,  # it listens on every interface otherwise
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",  # a second port
        "SFTP_ENABLED": "0",  # and a third
        "AUTH": "true",  # signatures and policies count
        "MINISTACK_HOST": DOMAIN,
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "S3_DATA_DIR": f"{folder}/s3",
        "LOG_LEVEL": "WARNING",
    }


@contextmanager
def _deletable(folder: str) -> Iterator[None]:
    """Make the folder deletable at the end: a zip may hold folders without the right to write."""
    yield
    for path in Path(folder).rglob("*"):
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                path.chmod(0o755)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(OSError), urllib.request.urlopen(f"{url}/_ministack/health", timeout=2):  # noqa: S310
            return
        time.sleep(0.1)
    lines = log.read_text(encoding="utf-8", errors="replace").strip()
    raise Problem(f"MiniStack does not start: {lines[-2000:] or 'it wrote nothing'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it, and the functions' processes, which are of its session."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
