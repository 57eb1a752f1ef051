"""`sam deploy` of the project's build into an emulator, as its administrator."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import boto3

from mcp_functions_harness import samconfig
from mcp_functions_harness.emulator.process import REGION, Emulator
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.verification.stack import ENDPOINT

BUILD = Path(".aws-sam/build/template.yaml")
OWN_SAM = Path(".venv-sam/bin/sam")  # where the project's Makefile installs it
QUIET = ("--no-confirm-changeset", "--no-progressbar")
NO_FILES = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "SAM_CLI_TELEMETRY": "0"}


def deploy(emulator: Emulator, environment: str) -> str:
    """Deploy the build of the project in this folder, as samconfig.toml has the environment; return the endpoint's URL.

    Raises:
        Problem: there is no build or no SAM CLI, or the deployment fails.
    """
    if not BUILD.exists():
        raise Problem(f"there is no {BUILD}: run sam build (make build)")
    sam = os.environ.get("SAM") or shutil.which("sam") or (str(OWN_SAM) if OWN_SAM.exists() else "")
    if not sam:
        raise Problem("there is no SAM CLI: make build installs it, or: pipx install aws-sam-cli")
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [*shlex.split(sam), "deploy", *QUIET, "--config-env", environment],
        env={**own, **NO_FILES, **emulator.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Problem(f"sam deploy fails:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    name = str(samconfig.Environment(Path(samconfig.FILE), environment).setting("stack_name"))
    session: Any = boto3.Session("test", "test", region_name=REGION)
    cloudformation = session.client("cloudformation", endpoint_url=emulator.url)
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return next(str(one["OutputValue"]) for one in stack["Outputs"] if one["OutputKey"] == ENDPOINT)
