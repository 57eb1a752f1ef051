"""The number of KMS calls in a short simulation, and the page with the figures of the long one."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.simulation import plan, plot, report
from tests.simulation.plan import ALONE, CEILING, NAIVE, OURS, USUAL, Effort
from tests.support.pictures import NoMatplotlib

if TYPE_CHECKING:
    from pathlib import Path

SHORT = {1: Effort(8, 2), 10: Effort(3, 2), 40: Effort(1, 2)}
PAGE = report.PAGE.read_text(encoding="utf-8")
FIGURES = PAGE.partition(report.BEGIN)[2].partition(report.END)[0].strip("\n")


@pytest.fixture(scope="module")
def results() -> plan.Results:
    return plan.gather((task, plan.run_one(task)) for task in plan.tasks(SHORT) if task.variation == USUAL)


def test_the_kms_calls_of_a_fleet_of_any_size_stay_below_the_limit(results: plan.Results) -> None:
    assert plan.over(results) == []
    for size in SHORT:
        steady = results[USUAL, OURS, size].steady
        assert 0 < steady.calls_per_million <= CEILING
        assert steady.waiting_share < 0.004
        assert steady.rounds > 10_000 * (size > 1)


def test_without_shared_keys_the_kms_calls_exceed_the_limit(results: plan.Results) -> None:
    swapped = {(USUAL, OURS, size): results[USUAL, ALONE, size] for size in SHORT}
    assert [line.partition(":")[0] for line in plan.over(swapped)] == ["10 containers", "40 containers"]


def test_the_kms_calls_grow_with_every_container_if_each_has_its_own_key(results: plan.Results) -> None:
    costs = [results[USUAL, ALONE, size].steady.calls_per_million for size in SHORT]
    assert costs[1] > 5 * costs[0]
    assert costs[2] > 3 * costs[1]


def test_one_key_for_each_token_costs_two_kms_calls_for_each_answered_round(results: plan.Results) -> None:
    for size in SHORT:
        steady = results[USUAL, NAIVE, size].steady
        assert steady.waiting_share == 1
        assert steady.calls_per_million == pytest.approx(1.9e6, rel=0.03)


def test_the_same_seed_gives_the_same_numbers() -> None:
    task = next(task for task in plan.tasks(SHORT) if task.design == OURS and task.load.containers == 10)
    assert plan.run_one(task) == plan.run_one(task)


# ---- The page


def test_the_simulation_page_states_the_simulated_parameters() -> None:
    assert report.parameters() in FIGURES


def test_every_fleet_size_on_the_page_stays_below_the_limit() -> None:
    column = report.heads().index(OURS)
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in FIGURES.splitlines()]
    rows = [row for row in shown if len(row) == len(report.heads()) and row[0].isdecimal()]
    assert [int(row[0]) for row in rows] == list(plan.SIZES)
    assert all(int(row[column].replace(",", "")) <= CEILING for row in rows)


def test_the_page_has_the_figures_of_the_current_code() -> None:
    smallest = {1: plan.SIZES[1]}
    again = plan.gather((task, plan.run_one(task)) for task in plan.tasks(smallest))
    for line in report.markdown(again).splitlines():
        if re.match(r"\| 1 \|", line):
            assert line in FIGURES, "the page is out of date: make simulate"


def test_writing_new_tables_keeps_all_other_text_of_the_page() -> None:
    assert report.written(PAGE, FIGURES) == PAGE
    assert report.written(report.written(PAGE, "other"), FIGURES) == PAGE


def test_the_chart_of_the_page_exists() -> None:
    assert f"]({report.PICTURE.name})" in PAGE
    assert report.PICTURE.read_bytes().startswith(b"\x89PNG")


def test_plot_writes_a_chart(results: plan.Results, tmp_path: Path) -> None:
    plot.draw(results, tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def test_an_error_names_a_missing_matplotlib_and_its_installation(
    results: plan.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoMatplotlib, match="pip install"):
        plot.draw(results, tmp_path / "drawn.png")
