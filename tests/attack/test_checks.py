"""The checks of a hostile client find each vulnerability of a weak server, and no hole in ours."""

from __future__ import annotations

import ast
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.client.http import Response
from tests.attack.checks import CHECKS
from tests.attack.findings import Report, Severity
from tests.attack.runner import attack
from tests.attack.scan import Bounds, Scan, SkipCheck
from tests.support import weak_server
from tests.support.attacker import Site, site
from tests.support.weak_server import running

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLIENT = ROOT / "harness/mcp_functions_harness/client"
PEOPLE: dict[str, Any] = {"headers": [("Authorization", "alice")], "other_headers": [("Authorization", "mallory")]}
BY_NAME = {check.name: check for check in CHECKS}
# Holes that imply others: a state without a seal is readable, and damage that leaves it valid JSON goes unnoticed.
RELATED_FINDINGS = {
    "state-edited": {"state-readable", "state-damaged", "state-respelled"},
    "statuses": {"codes-of-refusals"},
    "reflected-secrets": {"state-oracle"},
}
# Holes that would hide one another are in different rows.
COMBINED_VULNERABILITIES = [
    ["cold-answers", "headers-against-body", "text-that-is-not-json", "origin-of-a-stranger", "cache-hints", "ids"],
    ["answers-ahead", "header-error", "keys-twice", "origin-status", "state-readable", "state-replayed", "codes"],
    ["answers-malformed", "header-in-base64", "ids-that-are-none", "text-plain", "state-rewound", "cache-control"],
    ["answers-that-do-not-fit", "not-one-request", "foreign-host", "state-for-other-arguments", "session-ids"],
    ["undeclared-capability", "prototype-pollution", "http-methods", "state-for-another-target", "state-forged"],
    ["undeclared-mode", "half-a-message", "state-for-another-method", "state-of-another-type", "result-type"],
    ["capability-error", "notification-answered", "state-of-another-person", "state-oversized", "server-errors"],
    ["codes-of-refusals", "cors-with-credentials", "state-expired", "state-respelled", "traces-and-paths"],
    ["state-edited", "statuses"],
    ["state-not-refused"],
    ["reflected-secrets"],
    ["state-damaged", "state-oracle"],
    ["survives-odd-json"],
]


def found(report: Report) -> set[str]:
    return {finding.check.name for finding in report.findings}


# ---- Each hole is found, and nothing else


def test_a_secure_server_gets_no_finding() -> None:
    with running(lifetime=weak_server.LIFETIME) as url:
        report = attack(url, **PEOPLE, lifetime=weak_server.LIFETIME, checks=[BY_NAME["state-expired"]])
    assert (found(report), report.passed) == (set(), ["state-expired"])
    with running() as url:
        report = attack(url, **PEOPLE)
    assert (found(report), set(report.not_tried)) == (set(), {"state-edited", "state-expired"})
    assert not report.spent


@pytest.mark.parametrize("hole", [check.name for check in CHECKS if check.run])
def test_the_check_of_each_vulnerability_finds_it(hole: str) -> None:
    with running(hole, lifetime=weak_server.LIFETIME if hole == "state-expired" else 60) as url:
        report = attack(url, **PEOPLE, lifetime=weak_server.LIFETIME, checks=[BY_NAME[hole]])
    (finding,) = report.findings
    assert finding.check.name == hole
    assert all(proof.description for proof in finding.proofs)


@pytest.mark.parametrize("holes", COMBINED_VULNERABILITIES)
def test_every_finding_is_a_vulnerability_of_the_server(holes: list[str]) -> None:
    lifetime = weak_server.LIFETIME if "state-expired" in holes else None
    with running(*holes) as url:
        report = attack(url, **PEOPLE, lifetime=lifetime)
    company = {other for hole in holes for other in RELATED_FINDINGS.get(hole, ())}
    assert set(holes) <= found(report) <= set(holes) | company


def test_damaging_a_large_state_does_not_copy_it_for_each_character() -> None:
    state = "aB3-" * 2000
    exchange = SimpleNamespace(response=Response(400, {}, b"{}"))
    scan: Any = SimpleNamespace(
        canary="canary",
        require_victim_needing_state=lambda: None,
        reach_last_round=lambda _victim: (state, {}),
        call=lambda _victim, **_params: exchange,
    )
    check = BY_NAME["state-damaged"].run
    assert check
    tracemalloc.start()
    with pytest.raises(SkipCheck):  # the server refuses the valid state too
        list(check(scan))
    _size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * len(state)


def test_the_combined_servers_have_the_vulnerability_of_every_check() -> None:
    assert sorted(hole for holes in COMBINED_VULNERABILITIES for hole in holes) == sorted(BY_NAME)


def test_each_run_has_a_canary_of_its_own() -> None:
    scans = [Scan("http://127.0.0.1:1/mcp", {}, Bounds(), lifetime=None, wait=time.sleep) for _ in range(2)]
    assert scans[0].canary != scans[1].canary


def test_the_attacker_stops_when_its_request_budget_is_spent() -> None:
    with running() as url:
        report = attack(url, **PEOPLE, bounds=Bounds(requests=40))
    assert (report.requests, report.spent) == (40, True)
    assert "bounds" in report.not_tried["state-damaged"]


# ---- Ours


@pytest.fixture(scope="module")
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site")) as started:
        yield started


def test_the_attacker_finds_nothing_in_a_deployment_with_access_tokens(running_site: Site) -> None:
    def bearer(who: str) -> list[tuple[str, str]]:
        return [("Authorization", f"Bearer {running_site.token(who)}")]

    report = attack(
        running_site.url,
        headers=bearer("alice"),
        other_headers=bearer("mallory"),
        lifetime=600,
        bounds=Bounds(seconds=1000),
        wait=running_site.later,
    )
    assert found(report) == {"state-replayed", "state-rewound"}  # what no seal prevents: docs/security.md
    assert not report.holes
    assert report.not_tried.keys() == {"state-edited"}  # a sealed state is no JSON


def test_the_attacker_finds_nothing_in_an_open_deployment(tmp_path: Path) -> None:
    with site(tmp_path, auth="none") as started:
        report = attack(started.url, lifetime=600, bounds=Bounds(seconds=1000), wait=started.later)
    assert found(report) == {"state-replayed", "state-rewound"}
    assert report.not_tried.keys() == {"state-edited", "state-of-another-person"}


def test_the_attacker_finds_nothing_in_the_samples(tmp_path: Path) -> None:
    work_item: dict[str, Any] = {"workItemId": 1, "fields": {"System.State": "Resolved"}}
    named = [("update_work_item", work_item), ("get_weather", {"location": "Lisbon"})]
    with Harness(ROOT / "functions", state_dir=tmp_path) as harness:
        report = attack(harness.url, named=named)
    assert "update_work_item" in report.target
    assert "get_weather" in report.target
    assert found(report) <= {"state-replayed", "state-rewound"}


# ---- The table


def test_every_check_cites_a_sentence_of_a_specification() -> None:
    assert len(BY_NAME) == len(CHECKS) > 45
    for check in CHECKS:
        assert (check.run is None) != (check.watch is None), check.name
        assert check.sentence.endswith("."), check.name
        assert check.section.partition(",")[0].partition("/")[0] in {"basic", "client", "server"}, check.name
        assert check.severity is not Severity.HOLE or check.basis in {"MUST", "SHOULD", "opinion"}


def test_the_checks_import_nothing_of_the_toolkit() -> None:
    """Code that shared a mistake of the toolkit could not find it. The types of messages do not run."""
    for file in [*HERE.rglob("*.py"), *CLIENT.glob("*.py")]:
        if file.name.startswith("test_") or file == CLIENT / "tasks.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                is_ours = name.startswith(("mcp_functions_harness.client", "tests.attack"))
                is_ours |= name == "mcp_functions.protocol.wire_types" and getattr(node, "col_offset", 0) > 0
                assert is_ours or name.partition(".")[0] in sys.stdlib_module_names, (file, name)
