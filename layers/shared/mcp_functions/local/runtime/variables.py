"""The environment of a function's process: Lambda's variables, the template's, the harness's, little of the shell's.

What a function gets from nowhere else but the developer's shell, it will not get on Lambda: so it does not get it here.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mcp_functions.local.runtime.configuration import Configuration

# What a process needs of this machine, and what makes a proxy or a certificate of its owner's work.
OF_THE_SHELL = (
    "AWS_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
)


def of(
    name: str,
    folder: Path,
    configuration: Configuration,
    pointed: Mapping[str, str | None],
    address: str,
) -> dict[str, str]:
    """Write the environment of one process.

    Args:
        name: of the function, "<stack>-<folder>".
        folder: with its code.
        configuration: what the template says of it.
        pointed: credentials and endpoints of the harness.
        address: of its Runtime API.

    """
    shell = {variable: os.environ[variable] for variable in OF_THE_SHELL if variable in os.environ}
    return {
        **shell,
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "PYTHONDONTWRITEBYTECODE": "1",  # the folder is what SAM packages
        **configuration.variables,
        **{variable: value for variable, value in pointed.items() if value is not None},
        **_lambda(name, configuration),
        "AWS_LAMBDA_RUNTIME_API": address,
        "LAMBDA_TASK_ROOT": str(folder),
        "_HANDLER": configuration.handler,
    }


def _lambda(name: str, configuration: Configuration) -> dict[str, str]:
    day = time.strftime("%Y/%m/%d", time.gmtime())
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(configuration.memory),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": configuration.log_format,
        **({"AWS_LAMBDA_LOG_LEVEL": configuration.log_level} if configuration.log_format == "JSON" else {}),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{day}/[$LATEST]{uuid.uuid4().hex}",
    }
