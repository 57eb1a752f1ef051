"""`emulator`: deploys the project's build into an AWS on this machine, and serves it until Ctrl-C."""

import subprocess
from pathlib import Path
from typing import Any

import boto3
import click

from mcp_functions_harness.commands import options
from mcp_functions_harness.emulator import deployment, front, process
from mcp_functions_harness.problems import Problem

PORT = 8002
ENVIRONMENT = Path(".venv-ministack")  # where the project's Makefile installs MiniStack
MAY_CALL = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}


@click.command("emulator")
@click.option("--port", type=int, default=PORT, metavar="N", help=f"Default: {PORT}; 0: any.")
@click.option("--config-env", default="default", metavar="ENV", help="A table of samconfig.toml. Default: default.")
@click.option("--patches", is_flag=True, help="Only list the gaps of MiniStack that are patched.")
def command(port: int, config_env: str, *, patches: bool) -> None:
    """Deploy the build into an AWS on this machine (MiniStack), and serve it until Ctrl-C."""
    python = _python()
    if patches:
        subprocess.run([python, process.LAUNCHER, "--list"], check=True)
        return
    with options.until_stopped() as is_stopped, process.running(python) as emulator:
        click.echo(f"MiniStack runs at {emulator.url}; sam deploy takes half a minute")
        endpoint = deployment.deploy(emulator, config_env)
        with front.signing(emulator.address, endpoint, _caller(emulator), port=port) as url:
            exports = " ".join(f"{name}={value}" for name, value in emulator.environment.items())
            click.echo(f"Deployed. Clients of MCP: {url} (each request is signed as the IAM user caller)")
            click.echo(f"Programs of AWS: export {exports}")
            click.echo("Ctrl-C stops it, and everything in it is gone")
            options.wait(is_stopped)


def _python() -> Path:
    """Return the interpreter of the environment that has MiniStack."""
    python = ENVIRONMENT / "bin/python"
    if not python.exists():
        install = f"python3.13 -m venv {ENVIRONMENT} && {ENVIRONMENT}/bin/pip install 'mcp-functions[emulator]'"
        raise Problem(f"there is no {ENVIRONMENT} with MiniStack: make emulated makes it, or: {install}")
    return python.absolute()


def _caller(emulator: process.Emulator) -> front.Caller:
    session: Any = boto3.Session("test", "test", region_name=process.REGION)
    credentials = front.make_user(session.client("iam", endpoint_url=emulator.url), "caller", MAY_CALL)
    return front.Caller(credentials, process.REGION)
