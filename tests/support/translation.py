"""SAM's own transform, offline: what template.yaml becomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
TRANSLATE = ROOT / "scripts" / "translate.py"


def translate(*arguments: str | Path) -> Json:
    """Translate a template with some parameters, in another process."""
    environ = {**os.environ, "AWS_DEFAULT_REGION": "us-east-1"}
    command = [sys.executable, TRANSLATE, *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)  # noqa: S603 - our own words
    translation: Json = json.loads(done.stdout)
    return translation
