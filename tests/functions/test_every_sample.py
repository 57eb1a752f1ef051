"""Every sample has few lines, tests, recorded events, and a line in the README."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INFRASTRUCTURE = {"mcp", "oauth"}  # the endpoint, and the sign-in front
SAMPLES = sorted({path.parent.name for path in ROOT.glob("functions/*/app.py")} - INFRASTRUCTURE)

every_sample = pytest.mark.parametrize("sample", SAMPLES)


@every_sample
def test_a_sample_has_under_forty_lines(sample: str) -> None:
    assert len((ROOT / f"functions/{sample}/app.py").read_text(encoding="utf-8").splitlines()) < 40


@every_sample
def test_a_sample_has_tests_and_recorded_events(sample: str) -> None:
    assert (ROOT / f"tests/functions/test_{sample}.py").exists()
    assert list((ROOT / "events" / sample).glob("*.json"))


@every_sample
def test_the_readme_lists_a_sample(sample: str) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| [`{sample}`](functions/{sample}/app.py) |" in readme
