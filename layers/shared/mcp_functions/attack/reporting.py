"""A report that a person can read, and the same as JSON; each finding with what it takes to see it again."""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.attack.findings import Finding, Proof, Report
    from mcp_functions.attack.sending import Sent

SHOWN = 3  # proofs of one finding
LONGEST = 1500  # characters of a body in a command line
HINTS = {"caller": "$CREDENTIALS", "other": "$OTHER_CREDENTIALS"}


def text(report: Report, *, secured: bool) -> str:
    """Write a report for people.

    Args:
        report: of a run.
        secured: whether requests carried credentials, which no report repeats.

    """
    return "\n".join(_lines(report, secured)) + "\n"


def data(report: Report) -> dict[str, Any]:
    """Write a report for programs: whole bodies, in base64."""
    return {
        "url": report.url,
        "target": report.target,
        "requests": report.requests,
        "spent": report.spent,
        "holes": len(report.holes),
        "findings": [_finding(finding) for finding in report.findings],
        "passed": report.passed,
        "withoutVerdict": report.without_verdict,
        "notTried": report.not_tried,
    }


def curl(url: str, sent: Sent, *, secured: bool = False) -> str:
    """Write the request as a command; of credentials, only where they would stand."""
    words = ["curl", "-sS", "-i", *(() if sent.method == "POST" else ("-X", sent.method)), url]
    for name, value in sent.headers:
        words += ["-H", f"{name}: {value}" if value else f"{name};"]
    if sent.claimed is not None:
        words += ["-H", f"Content-Length: {sent.claimed}"]
    written = shlex.join(words)
    if secured:
        written += f' -H "{HINTS[sent.who]}"'
    if sent.body:
        written += f" --data-binary {_body(sent.body)}"
    return written


def _lines(report: Report, secured: bool) -> Iterator[str]:  # noqa: FBT001 - see `text`
    yield f"{report.requests} requests to {report.url}"
    yield f"asked by: {report.target}"
    for finding in report.findings:
        check = finding.check
        yield ""
        yield f"{check.severity.upper()}  {check.name}  ({check.basis}; {check.section})"
        yield f'  "{check.sentence}"' if check.basis != "opinion" else f"  our opinion: {check.sentence}"
        for proof in finding.proofs[:SHOWN]:
            yield f"  - {proof.what}"
            yield f"    {curl(report.url, proof.exchange.sent, secured=secured)}"
        if len(finding.proofs) > SHOWN:
            yield f"  - and {len(finding.proofs) - SHOWN} more: --json"
    yield ""
    yield f"found nothing: {', '.join(_passed(report)) or 'none'}"
    for name, reason in report.not_tried.items():
        yield f"not tried: {name}: {reason}"
    if report.spent:
        yield "The bounds of the run were used up before its end."
    yield f"{len(report.holes)} holes in {len(report.findings)} findings."


def _passed(report: Report) -> Iterator[str]:
    for name in report.passed:
        without = report.without_verdict.get(name)
        yield f"{name} ({without} requests got no verdict)" if without else name


def _finding(finding: Finding) -> dict[str, Any]:
    check = finding.check
    return {
        "name": check.name,
        "severity": check.severity,
        "basis": check.basis,
        "section": check.section,
        "sentence": check.sentence,
        "proofs": [_proof(proof) for proof in finding.proofs],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    sent, answer = proof.exchange
    return {
        "what": proof.what,
        "request": {
            "method": sent.method,
            "headers": [list(pair) for pair in sent.headers],
            "body": base64.b64encode(sent.body).decode(),
            "credentials": sent.who,
        },
        "response": {
            "status": answer.status,
            "headers": dict(answer.headers),
            "body": base64.b64encode(answer.body).decode(),
        },
    }


def _body(body: bytes) -> str:
    if len(body) > LONGEST:
        return f"@body  # {len(body)} bytes, whole in --json"
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return shlex.quote(text)
    return f'"$(echo {base64.b64encode(body).decode()} | base64 -d)"'
