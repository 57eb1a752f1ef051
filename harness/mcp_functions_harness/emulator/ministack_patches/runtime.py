"""Lambda: Python functions run in the runtime client that Lambda itself has, awslambdaric, over the Runtime API.

MiniStack has a loop of its own for Python, and the Runtime API for `provided` runtimes. Here Python is one of those: a
`bootstrap` file that starts awslambdaric stands beside the code.
"""

import hashlib
import importlib.metadata
import io
import os
import re
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from .patch import Patch, module

SERVICE = "services.lambda_svc"
RUNTIME = "core.lambda_runtime"
OWN_PACKAGES = ("awslambdaric", "boto3")  # of Lambda's image; with what they require
DISTRIBUTION = re.compile(r"[A-Za-z0-9._-]+")
BOOTSTRAP = """#!/bin/sh
exec "{python}" -S -c 'import names, runpy; runpy.run_module("awslambdaric", run_name="__main__")' "$_HANDLER"
"""
NAMES = Path(__file__).parent.parent / "names.py"
PASSED_ON = ("SSL_CERT_FILE", "EMULATOR_TLS_PORT")  # lead to the front in place of AWS's hosts
_unpacking = threading.Lock()


def _own_packages(folder: Path) -> Path:
    """Link Lambda's own packages into a folder, so that functions find these and nothing else of this environment."""
    folder.mkdir()
    wanted, seen = list(OWN_PACKAGES), set[str]()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        for path in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            target = folder / path
            if not target.exists():
                target.symlink_to(Path(str(distribution.locate_file(path))).resolve())
        required = [one for one in distribution.requires or () if "extra ==" not in one]
        wanted += [match[0] for one in required if (match := DISTRIBUTION.match(one))]
    return folder


class _Environments:
    """The environment of each function: its code with a bootstrap, its layers, and its variables."""

    def __init__(self) -> None:
        self.service = module(SERVICE)
        self._code_dir, self._variables = self.service._provided_runtime_code_dir, self.service._provided_worker_env
        self._place = Path(tempfile.gettempdir())
        self._own = _own_packages(self._place / "runtime")
        (self._own / NAMES.name).symlink_to(NAMES)
        self._shared = set(os.environ)  # MiniStack's own variables, of which a function sees none

    def code_dir(self, code_zip: bytes) -> str:
        folder = Path(self._code_dir(code_zip))
        bootstrap = folder / "bootstrap"
        with _unpacking:
            if not bootstrap.exists():
                text = BOOTSTRAP.format(python=sys.executable)
                descriptor = os.open(bootstrap, os.O_CREAT | os.O_WRONLY, 0o755)
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
        return str(folder)

    def variables(self, config: Any, folder: str, port: int) -> dict[str, str]:
        made = self._variables(config, folder, port)
        set_by_template = (config.get("Environment") or {}).get("Variables") or {}
        kept = {name: value for name, value in made.items() if name not in self._shared or name in set_by_template}
        zips = [zipped for one in config.get("Layers", ()) if (zipped := self.service._resolve_layer_zip(one))]
        return {
            **kept,
            # The keys of the role, and the endpoint, which MiniStack's own variables name too.
            **{name: made[name] for name in made if name.startswith("AWS_") and name not in set_by_template},
            "PYTHONPATH": os.pathsep.join([folder, *map(self._layer, reversed(zips)), str(self._own)]),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._place),
            "TZ": ":UTC",
            **_set_by_lambda(config, made),
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        }

    def _layer(self, zipped: bytes) -> str:
        folder = self._place / "layers" / hashlib.sha256(zipped).hexdigest()
        with _unpacking:
            if not folder.exists():
                with zipfile.ZipFile(io.BytesIO(zipped)) as files:
                    files.extractall(folder)
        return str(folder / "python")


def _set_by_lambda(config: Any, made: Any) -> dict[str, str]:
    logging = config.get("LoggingConfig") or {}
    function = made["AWS_LAMBDA_FUNCTION_NAME"]
    return {
        "AWS_DEFAULT_REGION": made["AWS_REGION"],
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config.get('Runtime')}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_FORMAT": str(logging.get("LogFormat", "Text")).upper(),
        "AWS_LAMBDA_LOG_LEVEL": str(logging.get("ApplicationLogLevel", "INFO")).upper(),
        "AWS_LAMBDA_LOG_GROUP_NAME": str(logging.get("LogGroup") or f"/aws/lambda/{function}"),
    }


def _runtime() -> None:
    environments, runtime = _Environments(), module(RUNTIME)
    provided = runtime._worker_class_for

    class PythonWorker(runtime.ProvidedWorker):  # type: ignore[misc, name-defined]
        """A process of awslambdaric."""

        def _build_handler_class(self, generation: int, pending: Any) -> Any:
            made = super()._build_handler_class(generation, pending)
            made.disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement
            return made

    def worker_class(config: Any) -> Any:
        return PythonWorker if str(config.get("Runtime")).startswith("python") else provided(config)

    service = environments.service
    service._provided_runtime_code_dir = environments.code_dir
    service._provided_worker_env = environments.variables
    service._execute_function_warm = service._execute_function_provided_warm
    runtime._worker_class_for = worker_class


PATCHES = (
    Patch(
        "runtime-client",
        "Python functions run in a loop of MiniStack's: no JSON log, an exception ends the process, layers come first",
        {
            f"{SERVICE}:_provided_runtime_code_dir": "85d4402ed282",
            f"{SERVICE}:_provided_worker_env": "8cccaed6a6d8",
            f"{SERVICE}:_execute_function_warm": "62b9218bef5b",
            f"{SERVICE}:_execute_function_provided_warm": "7cddef20157f",
            f"{SERVICE}:_resolve_layer_zip": "447d3c3ec42c",
            f"{RUNTIME}:_worker_class_for": "b5a23849280a",
            f"{RUNTIME}:ProvidedWorker": "10c36526207f",
        },
        _runtime,
    ),
)
