"""A short run of `make soak` with every fault, and the checker, which must find each kind of breach."""

from __future__ import annotations

import copy
import re
import time
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.soak import __main__ as command
from tests.soak import checker, growth, plan, plot, report, run, watch
from tests.soak.watch import Sample
from tests.support import modes
from tests.support.pictures import NoMatplotlib

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.soak.run import Seen
    from tests.soak.wires import Delivery

SEED, CONVERSATIONS, WORKERS = 7, 150, 4
PAGE = report.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    modes.skip_without_runtime()
    planned = plan.conversations(SEED, CONVERSATIONS)
    return run.run(planned, seed=SEED, directory=tmp_path_factory.mktemp("soak"), workers=WORKERS)


@pytest.fixture
def seen(worn: Seen) -> Seen:
    return copy.deepcopy(worn)


def whats(seen: Seen) -> Counter[str]:
    return Counter(breach.what for breach in checker.check(seen))


# ---- The soak


def test_every_conversation_ends_with_the_right_result_or_an_honest_error(worn: Seen) -> None:
    assert [str(breach) for breach in checker.check(worn)] == []
    assert len(worn.finals) == CONVERSATIONS
    assert sum(bool(final.result) for final in worn.finals.values()) > CONVERSATIONS * 0.9


def test_the_run_has_every_kind_of_fault(worn: Seen) -> None:
    assert {delivery.what for delivery in worn.deliveries} == {*plan.FAULTS, "again"}
    died = {f"{line['folder']} {line['at']}" for line in worn.journal if line["kind"] == "dies"}
    assert died == set(plan.KILLS)
    assert worn.killed
    assert {line["weather"] for line in worn.journal if line["kind"] == "kms"} == set(plan.WEATHER)
    born = [line for line in worn.journal if line["kind"] == "born" and line["folder"] != "mcp"]
    assert {(line["version"], line["rotated"]) for line in born} == {(0, False), (0, True), (1, False), (1, True)}
    assert any(abs(line["skew"]) > plan.TOLERATED for line in born)
    assert {delivery.person for delivery in worn.deliveries} == set(plan.PEOPLE)


def test_clients_get_the_errors_of_the_faults(worn: Seen) -> None:
    heard = Counter((one.what == "stranger", one.status, bool(one.error)) for one in worn.deliveries)
    assert heard[False, 500, False]  # the endpoint's process died
    assert heard[False, 200, True]  # a function's
    assert heard[True, 400, True]  # a stranger
    assert not heard[True, 200, False]


def test_a_step_with_a_lost_record_runs_again_under_the_same_key(worn: Seen) -> None:
    payments = [line for line in worn.journal if line.get("step") == "charge"]
    times = Counter(line["key"] for line in payments)
    assert max(times.values()) > 1  # a response was lost, or a request was sent twice
    assert len({line["result"] for line in payments}) == len(times)


# ---- What the checker sees: a run in which all was well, and one thing is changed


def _rounds(seen: Seen, kind: str, name: str = "") -> list[Delivery]:
    """List deliveries with a result of one kind that led to another request or ended the conversation."""
    return [
        one
        for one in seen.deliveries
        if one.result.get("resultType") == kind and one.what == "" and (not name or seen.planned[one.talk].name == name)
    ]


def _steps(seen: Seen, step: str) -> list[dict[str, Any]]:
    return [line for line in seen.journal if line.get("step") == step]


def _swap(seen: Seen) -> None:
    one, other = _rounds(seen, "complete")[:2]
    one.message, other.message = other.message, one.message


def _swap_with_ids(seen: Seen) -> None:
    one, other = _rounds(seen, "complete")[:2]
    for delivery, result in ((one, other.result), (other, one.result)):
        delivery.message = {"jsonrpc": "2.0", "id": delivery.id, "result": result}


def _swap_questions(seen: Seen) -> None:
    one, other = _rounds(seen, "input_required", "note")[:2]
    for delivery, result in ((one, other.result), (other, one.result)):
        delivery.message = {"jsonrpc": "2.0", "id": delivery.id, "result": result}


def _lose_an_end(seen: Seen) -> None:
    del seen.finals[3]


def _lose_an_answer(seen: Seen) -> None:
    one = _rounds(seen, "complete")[0]
    one.status = one.message = None


def _repeat_a_step(seen: Seen) -> None:
    after = next(one for one in _rounds(seen, "complete", "order") if one.parent)
    (line,) = [line for line in _steps(seen, "reserve") if line["d"] == _first(seen, after).name]
    seen.journal.append({**line, "d": after.name})


def _first(seen: Seen, delivery: Delivery) -> Delivery:
    named = {one.name: one for one in seen.deliveries}
    while delivery.parent is not None:
        delivery = named[delivery.parent]
    return delivery


def _repeat_a_step_in_one_round(seen: Seen) -> None:
    seen.journal.append(dict(_steps(seen, "reserve")[0]))


def _do_anothers_step(seen: Seen) -> None:
    _steps(seen, "announce")[0]["nonce"] = "n99999"


def _pay_under_another_key(seen: Seen) -> None:
    paid = Counter(line["key"] for line in _steps(seen, "charge")).most_common(1)[0][0]
    next(line for line in _steps(seen, "charge") if line["key"] == paid)["key"] = "another"


def _invoke_twice(seen: Seen) -> None:
    seen.journal.append(dict(next(line for line in seen.journal if line["kind"] == "begin")))


def _take_a_strangers_state(seen: Seen) -> None:
    stranger = next(one for one in seen.deliveries if one.what == "stranger" and one.status == 400)
    result = _rounds(seen, "complete")[0].result
    stranger.status, stranger.message = 200, {"jsonrpc": "2.0", "id": stranger.id, "result": result}


def _answer(status: int, error: dict[str, Any]) -> Callable[[Seen], None]:
    def change(seen: Seen) -> None:
        one = _rounds(seen, "complete")[0]
        one.status, one.message = status, {"jsonrpc": "2.0", "id": one.id, "error": error}

    return change


def _refuse_without_a_reason(seen: Seen) -> None:
    by = {line["d"]: line["env"] for line in seen.journal if line["kind"] == "begin" and line["folder"] != "mcp"}
    near = {line["env"] for line in seen.journal if line["kind"] == "born" and abs(line["skew"]) < plan.TOLERATED}
    one = next(
        one
        for one in _rounds(seen, "complete")
        if one.parent and {by[one.name], by.get(one.parent)} <= near and one.seconds < plan.TOLERATED
    )
    one.status, one.message = 400, {"jsonrpc": "2.0", "id": one.id, "error": checker.REFUSED}


def _take_a_state_from_the_future(seen: Seen) -> None:
    one = next(one for one in _rounds(seen, "complete") if one.parent)
    sealed = next(line for line in seen.journal if line.get("d") == one.parent and line["folder"] != "mcp")
    opened = next(line for line in seen.journal if line.get("d") == one.name and line["folder"] != "mcp")
    born = {line["env"]: line for line in seen.journal if line["kind"] == "born"}
    seen.journal.append({**born[sealed["env"]], "env": "ahead", "skew": born[opened["env"]]["skew"] + 1000})
    for line in seen.journal:
        if line.get("d") == one.parent and line["folder"] != "mcp":
            line["env"] = "ahead"


def _error_of(status: int, message: dict[str, Any] | None) -> Callable[[Seen], None]:
    def change(seen: Seen) -> None:
        for one in _rounds(seen, "complete"):
            one.status, one.message = status, message or {"jsonrpc": "2.0", "id": one.id, "error": checker.ENDED}

    return change


def _leave_a_process(seen: Seen) -> None:
    seen.left[4711] = "python -m awslambdaric app.handler"


def _end_badly(seen: Seen) -> None:
    seen.status = 1


def _complain(seen: Seen) -> None:
    seen.said = "a connection failed: KeyError\n"


CHANGES: dict[str, tuple[Callable[[Seen], None], str]] = {
    "two answers are swapped": (_swap, "the answer to another request"),
    "two answers are swapped, with the right ids": (_swap_with_ids, "a wrong result"),
    "two questions are swapped": (_swap_questions, "somebody else's question"),
    "a conversation never ends": (_lose_an_end, "a conversation without an end"),
    "an answer never comes": (_lose_an_answer, "no answer"),
    "a recorded step runs again": (_repeat_a_step, "a recorded step was repeated"),
    "a step runs twice in a round": (_repeat_a_step_in_one_round, "a recorded step was repeated"),
    "a step is another conversation's": (_do_anothers_step, "a step of another conversation"),
    "somebody pays twice": (_pay_under_another_key, "one payment under two keys"),
    "a request is run twice": (_invoke_twice, "a request that was run twice"),
    "a stranger gets on": (_take_a_strangers_state, "a stranger's state was taken"),
    "an error with a wrong status": (_answer(500, checker.ENDED), "an error that is not honest"),
    "a retry is promised without a header": (_answer(503, checker.BUSY), "an error that is not honest"),
    "an error that tells what happened": (
        _answer(200, {**checker.ENDED, "message": "KeyError: 'n00001'"}),
        "an error that is not honest",
    ),
    "a code that the specification does not know": (
        _answer(200, {**checker.ENDED, "code": -1}),
        "an answer that the specification does not know",
    ),
    "a state is refused without a reason": (
        _refuse_without_a_reason,
        "a state was refused within the tolerance of clocks",
    ),
    "a state from the future is taken": (
        _take_a_state_from_the_future,
        "a state was taken beyond the tolerance of clocks",
    ),
    "a function is given up early": (_answer(200, checker.LATE), "a function was given up too early"),
    "functions fail that nobody killed": (_error_of(200, None), "errors without a cause"),
    "the gateway fails though nobody was killed": (_error_of(500, checker.BARE), "errors without a cause"),
    "a process is left": (_leave_a_process, "a process was left"),
    "the harness fails at the end": (_end_badly, "the harness did not end well"),
    "the harness writes to stderr": (_complain, "the harness complained"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_checker_finds_each_breach(seen: Seen, change: str) -> None:
    make, breach = CHANGES[change]
    make(seen)
    assert breach in whats(seen)


# How the functions break for one conversation each, what befalls its rounds, and all that is then wrong with it.
BROKEN: list[tuple[str, str, tuple[str, ...], set[str]]] = [
    ("", "order", ("", "stranger", "", "unheard", ""), set()),
    ("", "note", ("", "stranger", "unheard", ""), set()),
    ("answers", "order", ("", "", ""), {"the answer to another request"}),
    ("keys", "order", ("", "", "unheard", ""), {"one payment under two keys"}),
    ("orphans", "note", ("", ""), set()),  # what is left of it belongs to no conversation
    ("principals", "order", ("", "stranger", "", ""), {"a stranger's state was taken"}),
    (
        "steps",
        "order",
        ("", "", ""),
        {"a step of another conversation", "a recorded step was repeated", "a wrong result"},
    ),
]


def test_the_checker_finds_functions_that_are_broken_on_purpose(tmp_path: Path) -> None:
    """Run one conversation for each defect, without random faults.

    No process is killed, no KMS call fails, and all clocks agree. Every request of a conversation asks for the same
    defect, so any process shows it. Every act is repeated until a result or a refusal arrives; on a slow machine some
    happen twice. No defect hides another, because each has its own conversation.
    """
    modes.skip_without_runtime()
    planned = [
        plan.Planned(number, f"n{number:05}", "ann", name, 1000 + number, kill="", fatal=0, acts=acts, broken=broken)
        for number, (broken, name, acts, _) in enumerate(BROKEN)
    ]
    seen = run.run(planned, seed=plan.CALM, directory=tmp_path, workers=1)
    found: dict[int | None, set[str]] = defaultdict(set)
    for breach in checker.check(seen):
        found[breach.talk].add(breach.what)
    assert {number: found[number] for number in range(len(BROKEN))} == dict(enumerate(one[-1] for one in BROKEN))
    assert "a process was left" in found[None]  # the orphan lives for an hour, unless the checker finds it
    assert all(final.result for final in seen.finals.values())
    while watch.left(tmp_path):  # killed by now; the kernel takes its time
        time.sleep(0.01)


# ---- What must not grow


def flat(number: int, **changed: Any) -> Sample:  # noqa: ANN401 - any figure
    same = {"rss": 90_000 + number % 7 * 40, "descriptors": 80 + number % 3, "threads": 80, "children": 8}
    return Sample(float(number), number * 10, **{**same, "zombies": frozenset(), **changed})


GROWING: dict[str, tuple[Callable[[int], Sample], str]] = {
    "memory": (lambda number: flat(number, rss=90_000 + number * 100), "memory grows"),
    "descriptors": (lambda number: flat(number, descriptors=80 + number // 2), "descriptors grow"),
    "processes": (lambda number: flat(number, children=8 + number), "too many processes"),
    "zombies": (lambda number: flat(number, zombies=frozenset({4711})), "a zombie"),
}


def grown(seen: Seen, samples: list[Sample]) -> set[str]:
    return {breach.what for breach in growth.breaches(replace(seen, samples=samples))}


@pytest.mark.parametrize("what", GROWING)
def test_the_check_for_leaks_finds_growth(worn: Seen, what: str) -> None:
    make, breach = GROWING[what]
    assert grown(worn, [make(number) for number in range(200)]) == {breach}


def test_the_check_for_leaks_accepts_constant_values(worn: Seen) -> None:
    assert grown(worn, [flat(number) for number in range(200)]) == set()
    assert grown(worn, [flat(number, zombies=frozenset({number})) for number in range(200)]) == set()  # soon gone


# ---- The plan


def test_the_same_seed_makes_the_same_plan_and_another_makes_another() -> None:
    def made(seed: int) -> list[object]:
        talks = [plan.conversation(seed, number, 500) for number in range(500)]
        places = [plan.placement(seed, number, folder) for folder in ("mcp", "order", "note") for number in range(20)]
        acts = [plan.fault(plan.chance_of(seed, talk)) for talk in talks]
        return [*talks, *places, *acts, *(plan.weather(seed, call) for call in range(100))]

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert len({talk.nonce for talk in made(1)[:500]}) == 500  # type: ignore[attr-defined]


def test_the_planned_clock_skew_is_within_the_tolerance() -> None:
    behind, ahead = plan.WITHIN
    assert ahead - behind < plan.TOLERATED < plan.BEYOND - ahead


# ---- The page


def test_a_breach_is_reported_without_contents_and_fails_the_run(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _swap_with_ids(seen)
    monkeypatch.setattr(run, "run", lambda *_arguments, **_options: seen)
    assert command.main(["--conversations", "200", "--seed", "7"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"^a wrong result in conversation \d+: n\d{5}-[0-9a-f]{8}\.\d+ after n", said, re.MULTILINE)
    assert "size" not in said


def test_the_report_writes_figures_and_a_chart_of_a_run(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "PICTURE", tmp_path / "soak.png")
    monkeypatch.setattr(run, "run", lambda *_arguments, **_options: seen)
    assert command.main(["--conversations", "200", "--seed", "7", "--page"]) == 0
    assert f"| conversations | {CONVERSATIONS} |" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert re.fullmatch(r"before\n<!--.*-->\n.*<!-- end -->\nafter\n", text, re.DOTALL)
    assert "old" not in text
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")


def test_an_error_names_a_missing_matplotlib_and_its_installation(
    worn: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(NoMatplotlib, match="pip install"):
        plot.draw(worn, tmp_path / "drawn.png")


def test_the_page_shows_a_run_without_a_breach() -> None:
    figures = PAGE.partition(report.BEGIN)[2].partition(report.END)[0]
    assert re.search(r"\| breaches [^|]*\| 0 \|", figures)
    assert re.search(r"\| processes left at the end \| 0 \|", figures)
    assert f"]({report.PICTURE.name})" in PAGE
    assert report.PICTURE.read_bytes().startswith(b"\x89PNG")
