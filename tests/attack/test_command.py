"""`python -m mcp_functions.attack` finds each vulnerability of a weak server, and nothing in this package."""

from __future__ import annotations

import ast
import json
import shlex
import sys
import time
import tracemalloc
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from mcp_functions.attack import CHECKS, Bounds, Report, Severity, attack, cli
from mcp_functions.attack.client import Response
from mcp_functions.attack.scan import Scan, SkipCheck
from mcp_functions.local import Harness
from tests.support import weak_server
from tests.support.attacker import Site, site
from tests.support.weak_server import running

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
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


# ---- The command


def test_the_attacker_finds_nothing_in_the_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    called = {"workItemId": 1, "fields": {"System.State": "Resolved"}}
    words = ["--tool", "update_work_item", "--arguments", json.dumps(called), "--tool", "get_weather"]
    words += ["--arguments", '{"location": "Lisbon"}', "--json", str(tmp_path / "report.json")]
    with Harness(ROOT / "functions", state_dir=tmp_path) as harness:
        assert cli.main([harness.url, *words]) == 0
    output = capsys.readouterr().out
    assert "Nothing but update_work_item, get_weather is called." in output
    assert "0 holes" in output
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert written["holes"] == 0
    assert {finding["name"] for finding in written["findings"]} <= {"state-replayed", "state-rewound"}


def test_a_finding_shows_how_to_reproduce_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running("state-for-other-arguments", "undeclared-capability") as url:
        assert (
            cli.main([url, "--header", "Authorization: Bearer very-secret", "--json", str(tmp_path / "report.json")])
            == 1
        )
        output = capsys.readouterr().out
        lines = output.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("HOLE"))
        assert "state-for-other-arguments  (SHOULD; basic/patterns/mrtr" in lines[at]
        assert "an identifier for the originating request" in lines[at + 1]
        command = shlex.split(next(line for line in lines[at:] if "curl" in line))
        body = command[command.index("--data-binary") + 1]
        headers = dict(h.split(": ", 1) for h in command if ": " in h and h != body)
        again = HTTPConnection(urlsplit(url).netloc, timeout=60)
        again.request("POST", "/mcp", body, headers | {"Authorization": "Bearer very-secret"})
        answered = json.loads(again.getresponse().read())
        again.close()
    assert "result" in answered or "error" in answered
    assert "very-secret" not in output + (tmp_path / "report.json").read_text(encoding="utf-8")
    assert "1 holes in 2 findings." in output


def test_the_attacker_can_run_a_single_check(capsys: pytest.CaptureFixture[str]) -> None:
    with running("cold-answers", "text-plain") as url:
        assert cli.main([url, "--only", "text-plain"]) == 0
    output = capsys.readouterr().out
    assert "INFORMATION  text-plain" in output
    assert "cold-answers" not in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["https://mcp.example.com/mcp"], "mcp.example.com is not this machine"),
        (["https://mcp.example.com/mcp", "--yes-this-is-mine", "example.com"], "mcp.example.com is not this machine"),
        (["http://127.0.0.1.example.com/mcp"], "127.0.0.1.example.com is not this machine"),
        (["http://127.0.0.1@mcp.example.com/mcp"], "mcp.example.com is not this machine"),
        (["file:///etc/passwd"], "is no http:// or https:// URL"),
        (["http://[::1/mcp"], "is no http:// or https:// URL"),
        (["http://127.0.0.1:1/mcp"], "does not answer (ConnectionRefusedError)"),
        (["http://127.0.0.1:1/mcp", "--tool", "x", "--arguments", "[]"], "--arguments must be a JSON object"),
        (["http://127.0.0.1:1/mcp", "--arguments", "{}"], "--arguments belongs to a --tool"),
        (["http://127.0.0.1:1/mcp", "--header", "Bearer x"], "a header is written 'Name: value'"),
        (
            ["http://127.0.0.1:1/mcp", "--json", "/no/such/folder"],
            "'--json': /no/such/folder cannot be written",
        ),
    ],
)
def test_the_attacker_reports_an_invalid_command_line_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    written = capsys.readouterr()
    assert message in written.err
    assert (written.err.count("\n"), written.out) == (1, "")


def test_a_refused_run_keeps_an_older_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older, new = tmp_path / "older.json", tmp_path / "new.json"
    older.write_text("older", encoding="utf-8")
    for file in (older, new):
        assert cli.main(["http://127.0.0.1:1/mcp", "--json", str(file)]) == 2
    assert "does not answer" in capsys.readouterr().err
    assert older.read_text(encoding="utf-8") == "older"
    assert not new.exists()


def test_the_attacker_reports_that_a_server_requires_credentials(
    running_site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([running_site.url]) == 2
    assert "wants credentials: --header" in capsys.readouterr().err


# ---- The table


def test_every_check_cites_a_sentence_of_a_specification() -> None:
    assert len(BY_NAME) == len(CHECKS) > 45
    for check in CHECKS:
        assert (check.run is None) != (check.watch is None), check.name
        assert check.sentence.endswith("."), check.name
        assert check.section.partition(",")[0].partition("/")[0] in {"basic", "client", "server"}, check.name
        assert check.severity is not Severity.HOLE or check.basis in {"MUST", "SHOULD", "opinion"}


def test_the_attacker_imports_nothing_of_the_toolkit() -> None:
    for file in (ROOT / "layers/shared/mcp_functions/attack").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                top = name.partition(".")[0]
                known = top in {*sys.stdlib_module_names, "click"}
                assert known or name.startswith("mcp_functions.attack"), (file, name)
