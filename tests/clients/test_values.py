"""What is sent passes what is published, for each type of the corpus, in the official TypeScript client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from mcp_functions_harness import Harness
from tests.conformance import node
from tests.support.corpus import CASES

HERE = Path(__file__).parent
COUNT = 5  # values of each type


def test_each_value_passes_the_published_schema_under_ajv_with_formats(tmp_path: Path) -> None:
    program = node.needed()
    with Harness(HERE / "values", state_dir=tmp_path) as harness:
        done = subprocess.run(  # noqa: S603 - our own script
            [program, HERE / "values.mjs"],
            input=json.dumps({"url": harness.url, "count": COUNT}),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout)
    assert len(heard["names"]) == len(CASES)
    names = dict(zip([f"type_{number}" for number in range(len(CASES))], CASES, strict=True))
    assert {names[name]: reason for name, reason in heard["refused"].items()} == {}
