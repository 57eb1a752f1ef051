"""The arithmetic of the benchmarks, on numbers with known results; and the pages that show a long run."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import cases, cost, dialects, environments, plot, profiles, report, runtime_client, targets
from tests.benchmarks.entrants import AWSLABS, ENTRANTS, FASTMCP, FLOOR, LIGHT, OBSERVED, OURS, SDK
from tests.benchmarks.figures import Figure, Key, Results, decile, figure, read
from tests.benchmarks.lab import write_catalogs
from tests.benchmarks.measuring import Sample
from tests.support.pictures import NoMatplotlib

if TYPE_CHECKING:
    from pathlib import Path

ABOUT: dict[str, object] = {
    "date": "2026-11-22",
    "machine": "a machine",
    "python": "CPython 3.13.0",
    "load": 0.1,
    "command": "make bench",
    "seed": 1,
}


def told(**milliseconds: float) -> Figure:
    return Figure(tuple(value * 1000 for value in milliseconds.values()), (1.0,) * len(milliseconds), 20.0, 60)


def whole(ours: float = 1.0, theirs: float = 10.0) -> Results:
    """Make a run in which this project has one figure everywhere, and the peers another."""
    results = Results({**ABOUT, "rounds": 3})
    for case in (*cases.CASES, *cases.growing()):
        for title in case.entrants:
            middle = ours if title in {OURS, OBSERVED, LIGHT} else theirs
            grown = case.size if case.name.startswith("state") else 1
            both = 2 if case.door else 1
            each = tuple(middle * grown * both * factor for factor in (900.0, 1000.0, 1100.0))
            results.figures[Key(case.name, case.size, title)] = Figure(each, each, 20.0, 60)
    return results


# ---- Figures


def test_a_ratio_is_the_median_of_the_ratios_within_each_round() -> None:
    ours, theirs = told(a=10, b=40, c=11), told(a=20, b=80, c=22)
    assert ours.over(theirs) == 0.5
    assert ours.median / theirs.median == 0.5
    assert told(a=10, b=40, c=40).over(told(a=20, b=80, c=40)) == 0.5  # of medians it would be 1


def test_deciles_are_samples_and_none_is_dropped() -> None:
    samples = [5.0, 1.0, 900.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert [decile(samples, tenth) for tenth in (0, 1, 5, 9, 10)] == [1.0, 2.0, 6.0, 10.0, 900.0]
    assert decile([3.0], 9) == 3.0


def test_samples_become_microseconds_and_megabytes() -> None:
    assert figure([Sample(1_500, 2_000, 2048, 7), Sample(2_500, 3_000, 1024, 9)]) == Figure(
        (1.5, 2.5), (2.0, 3.0), 2.0, 9
    )


def test_the_fastest_peer_excludes_floors_and_this_project() -> None:
    results = Results()
    for title, took in ((FLOOR, 1.0), (OURS, 2.0), (AWSLABS, 9.0), (SDK, 8.0)):
        results.figures[Key("warm-call", 0, title)] = told(a=took)
    assert results.fastest_peer("warm-call") == SDK
    assert results.fastest_peer("cold-add") is None
    assert results.ratio("warm-call", OURS, "warm-call", SDK) == 0.25
    assert results.ratio("warm-call", OURS, "warm-call", FASTMCP) is None


def test_a_run_can_be_read_again(tmp_path: Path) -> None:
    results = whole()
    results.absent["fastmcp 4.1.6 + Mangum"] = "no such version"
    results.crowds.append({"people": 8, "conversations": 2.5, "p50": 10.0, "p90": 20.0})
    results.write(tmp_path / "run.json")
    assert read(tmp_path / "run.json") == results


# ---- Targets


def test_targets_are_met_if_peers_take_100_times_as_long_and_missed_if_they_take_the_same_time() -> None:
    met = {one.title: one for one in targets.verdicts(whole(1.0, 100.0))}
    assert all(one.met for one in met.values())
    assert met["cold `add`, direct, compared with awslabs"].found == pytest.approx(0.01)
    missed = [one for one in targets.verdicts(whole(1.0, 1.0)) if not one.met]
    below_peers = [most for *_row, most in (*targets.TARGETS, *targets.STATES) if most < 1]
    assert len(missed) == len(below_peers)  # growth is ours alone
    assert {one.word for one in missed} == {"missed"}


def test_a_target_without_a_figure_is_neither_met_nor_missed() -> None:
    verdicts = targets.verdicts(Results())
    assert {one.word for one in verdicts} == {"not measured"}
    assert not any(one.met for one in verdicts)


@pytest.mark.parametrize(
    ("case", "sizes", "title"),
    [
        ("state-answer", {64: 64.0, 1024: 1024.0 * 16}, "linear in bytes"),
        ("rounds", {2: 1.0, 5: 2.0, 9: 9.0}, "linear in rounds"),
        ("tools", {50: 1.0, 500: 20.0}, "linear in tools"),
    ],
)
def test_growth_above_its_limit_misses_the_target(case: str, sizes: dict[int, float], title: str) -> None:
    results = whole(1.0, 100.0)
    results.figures |= {Key(case, size, OURS): told(a=took, b=took, c=took) for size, took in sizes.items()}
    assert [one.title for one in targets.verdicts(results) if not one.met and title in one.title]


def test_a_sign_in_above_its_time_limit_misses_the_target() -> None:
    for took, met in ((249.0, True), (251.0, False)):
        results = Results(figures={Key("cold-sign-in", 0, OURS): told(a=1.0, b=took, c=1000.0)})
        (verdict,) = (one for one in targets.verdicts(results) if "sign-in" in one.title)
        assert verdict.met == met


# ---- Cases


def test_every_contender_has_the_function_of_each_of_its_cases() -> None:
    for case in (*cases.CASES, *cases.growing()):
        for title in case.entrants:
            module = ENTRANTS[title].module
            if module not in {"", "json"}:
                source = (environments.HERE / "contenders" / f"{module}.py").read_text(encoding="utf-8")
                assert f"def {case.function}(" in source, (case.name, title)


def test_the_names_of_cases_are_unique_and_every_case_has_a_table() -> None:
    names = [case.name for case in cases.CASES]
    assert len(set(names)) == len(names)
    assert {case.table for case in cases.CASES} == set(cases.TABLES)
    assert {case.table for case in cases.growing()} == set(cases.GROWTH)


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("warm-call", {"content": [{"type": "text", "text": "23"}]}),
        ("warm-call", {"content": [{"type": "text", "text": "5"}], "isError": True}),
        ("warm-ask", {"resultType": "complete", "content": []}),
        ("warm-list", {"tools": [{}] * 49}),
    ],
)
def test_the_benchmark_refuses_a_wrong_result(case: str, result: dict[str, object]) -> None:
    (found,) = (one for one in cases.CASES if one.name == case)
    with pytest.raises(dialects.WrongAnswer):
        found.check(result)


def test_the_benchmark_refuses_an_error_response() -> None:
    with pytest.raises(dialects.WrongAnswer, match="-32602"):
        dialects.result({"statusCode": 200, "body": '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602}}'})
    with pytest.raises(dialects.WrongAnswer):
        dialects.answered({}, {"resultType": "complete"})


def test_each_catalog_of_the_benchmark_has_the_number_of_tools_in_its_name(tmp_path: Path) -> None:
    write_catalogs(tmp_path, (1, 10))
    assert [(tmp_path / name).read_text(encoding="utf-8").count('"inputSchema"') for name in ("1.json", "10.json")] == [
        1,
        10,
    ]
    assert '"book_flight": "ask"' in (tmp_path / "0.json").read_text(encoding="utf-8")


def test_the_requirements_of_a_peer_pin_every_package() -> None:
    for name in environments.PEERS:
        lines = (environments.HERE / "peers" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"#.*|[\w.-]+==[\w.]+(  # held.+)?", line) for line in lines), name


# ---- Profiles

IMPORTS = """import time: self [us] | cumulative | imported package
import time:       100 |        100 |     _json
import time:        50 |        150 |   json.scanner
import time:        20 |        170 | json
import time:         5 |          5 | other
"""


def test_imports_are_listed_under_their_importers() -> None:
    modules = profiles.read_imports(IMPORTS)
    assert [(one.name, one.own, one.all, one.importers) for one in modules] == [
        ("_json", 100, 100, ("json.scanner", "json")),
        ("json.scanner", 50, 150, ("json",)),
        ("json", 20, 170, ()),
        ("other", 5, 5, ()),
    ]


# ---- Pages


def test_tables_name_the_path_of_a_figure_through_the_endpoint() -> None:
    text = report.markdown(whole())
    doors = [case for case in cases.CASES if case.door]
    assert text.count(f"{report.DOOR} |") == sum(len(case.entrants) for case in doors)
    assert f"| {OURS} | 1.00 | 0.90-1.10 | 20 | 60 | 0.10 |" in text
    assert f"| {OURS}{report.DOOR} | 2.00 | 1.80-2.20 | 20 | 60 | 0.20 |" in text


def test_the_report_warns_that_the_machine_was_busy() -> None:
    results = whole()
    assert "was busy" not in report.about(results)
    results.about["load"] = 7.0
    assert "load average 7.0 at the start. The machine was busy" in report.about(results)


def test_the_report_names_peers_that_could_not_be_installed() -> None:
    results = whole()
    results.absent["fastmcp 4.1.6 + Mangum"] = "no such version"
    assert "not measured: fastmcp 4.1.6 + Mangum: no such version" in report.markdown(results)


@pytest.fixture(scope="module")
def shown() -> Results:
    return read(report.DATA)


def test_the_performance_page_shows_the_stored_run(shown: Results) -> None:
    assert report.summary(shown) in report.PAGE.read_text(encoding="utf-8")
    assert report.PICTURE.read_bytes().startswith(b"\x89PNG")


def test_the_costs_page_uses_the_figures_of_the_stored_run(shown: Results) -> None:
    page = cost.PAGE.read_text(encoding="utf-8")
    assert cost.markdown(shown) in page, "make bench writes it, or --again"
    assert cost.worst_case_row(shown) in page


def test_the_sums_on_the_costs_page_are_correct() -> None:
    section = cost.PAGE.read_text(encoding="utf-8").partition(cost.BEGIN)[2].partition(cost.END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if " USD / " in line]
    assert len(rows) == 7
    for _what, how, usd in rows:
        plain = re.sub(r"[a-zA-Z]{2,}|(?<=\d) (?=\d{3})", "", how).replace("x", "*")
        assert f"{eval(plain):.2f}" == usd, how  # noqa: S307 - a sum that our own page writes
    (together,) = re.findall(r"\| \*\*together\*\* \|  \| \*\*([\d.]+)\*\*", section)
    assert float(together) == pytest.approx(sum(float(usd) for _what, _how, usd in rows), abs=0.03)


def test_the_billed_milliseconds_are_scaled_by_the_processor_share_of_the_memory() -> None:
    (first, *_), chilly = cost.rounds(whole(2.0)), cost.cold(whole(2.0))
    assert first.function == 8  # 2 ms / (512 / 1769) + 1
    assert first.endpoint == 26  # 2 ms more in front, 1 and 10 assumed, and the wait for the function
    assert chilly.both == first.both
    with pytest.raises(LookupError, match="was not measured"):
        cost.rounds(Results())


def test_only_the_text_between_the_marks_of_a_page_is_rewritten() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    inside = page.partition(report.BEGIN)[2].partition(report.END)[0].strip("\n")
    assert report.written(page, inside) == page
    assert report.written(report.written(page, "other"), inside) == page


def test_an_error_names_a_missing_matplotlib_and_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoMatplotlib, match="pip install"):
        plot.draw(whole(), tmp_path / "drawn.png")


def test_the_chart_has_a_bar_for_each_contender_and_path_with_the_shortest_first() -> None:
    bars = plot.bars(whole(), ("cold-add", "cold-add-door"))
    assert bars[0][0] == OURS
    assert f"{OURS}, through /mcp" in [bar[0] for bar in bars]
    assert [bar[1] for bar in bars] == sorted(bar[1] for bar in bars)


# ---- Lambda's runtime client


def test_the_runtime_client_loads_a_contender_and_posts_its_response(tmp_path: Path) -> None:
    contenders = environments.HERE / "contenders"
    environ = {"PYTHONPATH": str(contenders), "BENCH_CONTENDER": "floor,add,", "AWS_LAMBDA_FUNCTION_NAME": "shop_add"}
    event = dialects.request(dialects.MODERN, "tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
    response, wall, cpu, memory = runtime_client.run(sys.executable, environ, "add", event, tmp_path / "output")
    assert dialects.text_of(dialects.result(response)) == "5"
    assert min(wall, cpu, memory) > 0


def test_a_contender_that_does_not_load_has_no_figure(tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(environments.HERE / "contenders"), "BENCH_CONTENDER": "missing,add,"}
    with pytest.raises(dialects.WrongAnswer, match="missing"):
        runtime_client.run(sys.executable, environ, "add", {}, tmp_path / "output")
