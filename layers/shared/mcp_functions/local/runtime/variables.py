"""Collects the environment variables of a function's process, from Lambda, the template, the harness and the shell.

Of the developer's shell the process gets `FROM_SHELL` only: other variables would be missing on Lambda too.
"""

import os
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from mcp_functions.local.lambdas.modules import common
from mcp_functions.local.runtime.configuration import Configuration

# A process needs these to find its libraries, its proxy and its certificates.
FROM_SHELL = (
    "AWS_CA_BUNDLE", "HTTPS_PROXY", "HTTP_PROXY", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "http_proxy", "https_proxy",
)  # fmt: skip


def of(name: str, folder: Path, configuration: Configuration, endpoints: Mapping[str, str | None]) -> dict[str, str]:
    """Return the environment of one process, to which `Process` adds the address of its Runtime API.

    Args:
        name: the function's name in AWS, "<stack>_<folder>".
        folder: the folder of its code.
        configuration: what the template says about the function.
        endpoints: the environment variables with the harness's credentials and endpoints. None: not set.
    """
    shell = {variable: os.environ[variable] for variable in FROM_SHELL if variable in os.environ}
    python_path = [str(common(folder.parent))]
    if shell.get("PYTHONPATH"):
        python_path.append(shell["PYTHONPATH"])
    return {  # a later entry replaces an earlier one of the same name
        **shell,
        "PYTHONPATH": os.pathsep.join(python_path),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONDONTWRITEBYTECODE": "1",  # SAM would package bytecode in the folder
        **configuration.variables,
        **{variable: value for variable, value in endpoints.items() if value is not None},
        **_set_by_lambda(name, configuration),
        "LAMBDA_TASK_ROOT": str(folder),
        "_HANDLER": configuration.handler,
    }


def _set_by_lambda(name: str, configuration: Configuration) -> dict[str, str]:
    """Return Lambda's defined runtime variables (Lambda Developer Guide, "Environment variables")."""
    day = time.strftime("%Y/%m/%d", time.gmtime())
    variables = {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration.memory),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": configuration.log_format,
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{day}/[$LATEST]{uuid.uuid4().hex}",
    }
    if configuration.log_format == "JSON":
        variables["AWS_LAMBDA_LOG_LEVEL"] = configuration.log_level
    return variables
