"""The official conformance suite passes in both placements: a Lambda for each handler, and one Lambda for all.

The suite's exit code alone proves little: it forgives warnings and skips what it cannot reach. So this reads all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mcp_functions_harness import Harness
from tests.clients.people import Person, accept
from tests.conformance import node
from tests.support import modes

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
SUITE = node.MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
REVISION = "2026-07-28"
SCENARIOS = 40
TASK_SCENARIOS = 10
TASK_CHECKS = 36
SKILLS = {"sep-2640-skills-enumeration": 32, "sep-2640-skills-directory": 7, "sep-2640-skills-manifest": 6}
CHECKS = 147  # that pass when the five below are skipped

# There is nothing to subscribe to: a Lambda behind API Gateway cannot push, so it advertises no `listChanged`.
SUBSCRIPTIONS = {
    "sep-2575-server-sends-subscription-ack",
    "sep-2575-server-tags-subscription-id",
    "sep-2575-server-honors-notification-filter",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
}


# The results for the revisions of 2025: scenarios, checks that pass, and scenarios that are not applicable. Here a
# stream ends at a question, and a call without one is one response, so test_reconnection is "not applicable".
EARLIER: dict[str, tuple[int, int, list[str]]] = {
    "2025-11-25": (33, 76, ["server-sse-polling"]),
    "2025-06-18": (27, 52, []),
}
# They subscribe without asking whether that is advertised: expected-failures.yml.
UNADVERTISED = {"resources-subscribe", "resources-unsubscribe"}
# A session is a token that the server does not store, so DELETE gets 405, as the specification allows.
SESSIONS = {"server-session-delete-accepted", "server-session-terminated-returns-404"}

# The suite gives these 0.6 seconds, in which a process may start, or may not: so it finds them started.
HURRIED = ("test_streaming_elicitation", "test_logging_tool")


class Verdict(NamedTuple):
    """The result of the suite: its exit code, the end of its report, and every check by scenario."""

    exit_code: int
    report: str
    checks: dict[str, list[dict[str, Any]]]

    def with_status(self, *statuses: str) -> list[str]:
        """Say which checks ended so, and why."""
        return [
            f"{scenario}: {check['id']}: {check['status']}: {check.get('errorMessage', '')}"
            for scenario, checks in self.checks.items()
            for check in checks
            if check["status"] in statuses
        ]


PLACEMENTS = {"functions": "with a Lambda for every handler", "one": "with one Lambda for all"}
ALL = [(placement, mode) for placement in PLACEMENTS for mode in modes.MODES]
# Each placement and each mode once: `make conformance` takes every pair of them, and twice the time.
SOME = [("functions", modes.IN_PROCESS), ("one", modes.RUNTIME)]
SOME_EARLIER = [(*SOME[0], "2025-11-25"), (*SOME[1], "2025-06-18")]
EVERYTHING = os.environ.get("CONFORMANCE") == "all"
PLACES = ALL if EVERYTHING else SOME
EARLIER_PLACES = [(*place, revision) for place in ALL for revision in EARLIER] if EVERYTHING else SOME_EARLIER


def _id(place: object) -> str:
    return " ".join(PLACEMENTS.get(str(each), str(each)) for each in place) if isinstance(place, tuple) else str(place)


@pytest.fixture(scope="module", params=PLACES, ids=_id)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    placement, mode = request.param
    runtime = modes.is_runtime(mode)
    node.needed()
    state_dir = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as shell:
        shell.setenv("PYTHONPATH", str(HERE.parents[1]))  # for one/mcp, which imports the functions of the others
        with Harness(HERE / placement, state_dir=state_dir, runtime=runtime) as harness:
            for tool in HURRIED:
                Person(accept(confirm=True)).call_tool(harness.url, tool, {})
            yield harness.url


@pytest.fixture(scope="module")
def everything(url: str, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    return _strictly(url, tmp_path_factory.mktemp("suite"), REVISION)


def _strictly(url: str, folder: Path, revision: str) -> Verdict:
    strictly = ("--expected-failures", str(HERE / "expected-failures.yml"))
    return _judged(url, folder, "--suite", "all", "--spec-version", revision, *strictly)


def _judged(url: str, folder: Path, *options: str) -> Verdict:
    command = [str(node.needed()), str(SUITE), "server", "--url", url, "-o", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - pinned
    checks = {_scenario(file): json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/checks.json")}
    return Verdict(done.returncode, (done.stdout + done.stderr)[-4000:], checks)


def _scenario(file: Path) -> str:
    named = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", file.parent.name)
    return named[1] if named else file.parent.name


def test_no_scenario_fails_or_warns(everything: Verdict) -> None:
    assert everything.with_status("FAILURE", "WARNING") == []
    assert everything.exit_code == 0, everything.report


def test_all_forty_scenarios_run(everything: Verdict) -> None:
    assert len(everything.checks) == SCENARIOS
    assert [scenario for scenario, checks in everything.checks.items() if not _passed(checks)] == []


def test_only_subscriptions_are_skipped(everything: Verdict) -> None:
    skipped = {check["id"] for checks in everything.checks.values() for check in checks if check["status"] == "SKIPPED"}
    assert skipped <= SUBSCRIPTIONS


def test_the_number_of_passed_checks_is_unchanged(everything: Verdict) -> None:
    counted = Counter(check["status"] for checks in everything.checks.values() for check in checks)
    assert set(counted) <= {"SUCCESS", "SKIPPED", "INFO"}
    assert counted["SUCCESS"] >= CHECKS
    assert counted["SUCCESS"] + counted["SKIPPED"] == CHECKS + len(SUBSCRIPTIONS)


@pytest.fixture(scope="module")
def required(url: str, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    return _judged(url, tmp_path_factory.mktemp("required"), "--requirements", REVISION)


def test_no_requirement_of_the_revision_fails(required: Verdict) -> None:
    assert required.exit_code == 0, required.report


def test_all_ten_scenarios_of_tasks_run_and_nine_pass_every_check(required: Verdict) -> None:
    of_tasks = {scenario: checks for scenario, checks in required.checks.items() if scenario.startswith("tasks-")}
    assert len(of_tasks) == TASK_SCENARIOS
    assert _of_tasks(required.with_status("FAILURE", "WARNING")) == []
    # "Status notifications conformance, pending subscriptions/listen rewrite": it is skipped for everybody
    assert [scenario for scenario, checks in of_tasks.items() if not _passed(checks)] == ["tasks-status-notifications"]
    assert len(_of_tasks(required.with_status("SUCCESS"))) >= TASK_CHECKS


# Neither the suite "all" nor the requirements of a revision contain the scenarios of this extension.
@pytest.mark.parametrize(("scenario", "checks"), SKILLS.items())
def test_every_check_of_skills_passes_and_none_is_skipped(url: str, scenario: str, checks: int, tmp_path: Path) -> None:
    verdict = _judged(url, tmp_path, "--scenario", scenario)
    assert [check["status"] for check in verdict.checks[scenario]] == ["SUCCESS"] * checks, verdict.report
    assert verdict.exit_code == 0, verdict.report


def _of_tasks(said: list[str]) -> list[str]:
    return [line for line in said if line.startswith("tasks-")]


def _passed(checks: list[dict[str, Any]]) -> bool:
    return any(check["status"] == "SUCCESS" for check in checks)


# --- the revisions of 2025, over the same handlers --------------------------------------------------------------------


@pytest.fixture(scope="module")
def earlier(url: str, revision: str, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    return _strictly(url, tmp_path_factory.mktemp("earlier"), revision)


@pytest.fixture(scope="module")
def revision(request: pytest.FixtureRequest) -> str:
    named: str = request.param
    return named


at_earlier_revisions = pytest.mark.parametrize(
    ("url", "revision"),
    [((placement, mode), revision) for placement, mode, revision in EARLIER_PLACES],
    indirect=True,
    ids=_id,
)


@at_earlier_revisions
def test_only_subscriptions_of_an_earlier_revision_fail_without_warnings(earlier: Verdict) -> None:
    assert {line.partition(":")[0] for line in earlier.with_status("FAILURE", "WARNING")} == UNADVERTISED
    assert earlier.exit_code == 0, earlier.report


@at_earlier_revisions
def test_all_scenarios_of_an_earlier_revision_run_and_the_number_of_passed_checks_is_unchanged(
    earlier: Verdict, revision: str
) -> None:
    scenarios, passed, not_applicable = EARLIER[revision]
    assert len(earlier.checks) == scenarios
    assert [scenario for scenario, checks in earlier.checks.items() if not _passed(checks)] == not_applicable
    assert len(earlier.with_status("SUCCESS")) >= passed


@at_earlier_revisions
def test_only_the_end_of_a_session_is_skipped_in_an_earlier_revision(earlier: Verdict) -> None:
    skipped = {check["id"] for checks in earlier.checks.values() for check in checks if check["status"] == "SKIPPED"}
    assert skipped == SESSIONS


@at_earlier_revisions
def test_clients_of_earlier_revisions_get_elicitation_and_sampling_requests(earlier: Verdict, revision: str) -> None:
    asking = {"tools-call-elicitation", "tools-call-sampling"}
    if revision != "2025-06-18":
        asking |= {"elicitation-sep1034-defaults", "elicitation-sep1330-enums"}
    assert {scenario for scenario in asking if _passed(earlier.checks[scenario])} == asking
