"""Every sample has few lines, tests, recorded events, and a line in the README."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_SAMPLES = {"mcp", "oauth"}  # the endpoint, and the sign-in front
SAMPLES = sorted({path.parent.name for path in ROOT.glob("functions/*/app.py")} - NO_SAMPLES)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_has_under_forty_lines_tests_events_and_a_line_in_the_readme(sample: str) -> None:
    assert len((ROOT / f"functions/{sample}/app.py").read_text(encoding="utf-8").splitlines()) < 40
    assert (ROOT / f"tests/functions/test_{sample}.py").exists()
    assert sorted((ROOT / "events" / sample).glob("*.json"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| [`{sample}`](functions/{sample}/app.py) |" in readme
