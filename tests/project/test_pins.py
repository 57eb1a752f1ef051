"""`make pins`, with the packages of this test in the place of pip's index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement

from scripts import pins

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Each package with its releases, and what it asks for.
INDEX = {"client": ["1.9", "2.0"], "core": ["5.1", "5.2"], "server": ["3.0", "3.1"]}
NEEDS = {"client": ["core<5.2"], "server": ["core"]}


@pytest.fixture(autouse=True)
def _index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Answer as pip does: `core` 5.2 only to who installs no `client`."""

    def reported(wanted: list[str], options: Iterable[str]) -> list[dict[str, Any]]:
        alone = "--no-deps" in options
        asked = {Requirement(one).name: Requirement(one) for one in wanted}
        ranges = {name: one.specifier for name, one in asked.items()}
        if not alone:
            asked["core"] = Requirement("core<5.2" if "client" in asked else "core")
            ranges["core"] = asked["core"].specifier
        newest = {name: [each for each in INDEX[name] if each in allowed][-1] for name, allowed in ranges.items()}
        return [
            {"name": name, "version": found, "requires_dist": NEEDS.get(name, [])} for name, found in newest.items()
        ]

    monkeypatch.setattr(pins, "reported", reported)
    monkeypatch.setattr(pins, "ROOT", tmp_path)


def raised(folder: Path, text: str) -> str:
    file = folder / "all.txt"
    file.write_text(text, encoding="utf-8")
    pins.raise_environment(file)
    return file.read_text(encoding="utf-8")


def test_pins_are_raised_together_and_what_they_no_longer_need_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = raised(tmp_path, "server==3.0\n# What these need:\ncore==5.1\nold==1.0\n")
    assert after == "server==3.1\n# What these need:\ncore==5.2\n"
    assert "all.txt: server 3.0 -> 3.1\n" in capsys.readouterr().out


def test_a_held_pin_stays_in_its_range_and_its_reason_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = raised(tmp_path, "client==1.8  # held <2: of last year\nserver==3.0  # it serves; held: measured\n")
    assert after.startswith("client==1.9  # held <2: of last year\nserver==3.0  # it serves; held: measured\n")
    told = capsys.readouterr().out
    assert "client 1.8 -> 1.9, held <2: of last year\n" in told
    assert "server held ==3.0: measured\n" in told


def test_the_package_that_keeps_another_one_from_its_newest_release_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raised(tmp_path, "client==1.9\ncore==5.1\n")
    assert "core 5.1, not 5.2: for client\n" in capsys.readouterr().out
