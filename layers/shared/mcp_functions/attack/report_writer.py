"""Writes a report as text for people, with a curl command that repeats each request, and as JSON for programs."""

import base64
import shlex
from collections.abc import Iterator
from typing import Any

from mcp_functions.attack.client import Request
from mcp_functions.attack.findings import Finding, Proof, Report

SHOWN_PROOFS = 3  # how many proofs of a finding the text shows
MAX_BODY_CHARS = 1500  # the longest body that a command contains
CREDENTIALS = {"caller": "$CREDENTIALS", "other": "$OTHER_CREDENTIALS"}  # shell variables that the user sets


def as_text(report: Report, *, secured: bool) -> str:
    """Return a report for people.

    Args:
        report: the report.
        secured: whether requests had credentials; then the commands name them as shell variables.
    """
    lines = [f"{report.requests} requests to {report.url}", f"asked by: {report.target}"]
    for finding in report.findings:
        lines += _finding_lines(finding, report.url, secured=secured)
    lines += ["", f"found nothing: {', '.join(_passed(report)) or 'none'}"]
    lines += [f"not tried: {name}: {reason}" for name, reason in report.not_tried.items()]
    if report.spent:
        lines.append("The bounds of the run were used up before its end.")
    lines.append(f"{len(report.holes)} holes in {len(report.findings)} findings.")
    return "\n".join(lines) + "\n"


def as_json(report: Report) -> dict[str, Any]:
    """Return a report for programs: with whole bodies, in base64."""
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


def curl(url: str, request: Request, *, secured: bool) -> str:
    """Return the command that sends a request; credentials are shell variables."""
    words = ["curl", "-sS", "-i"]
    if request.method != "POST":
        words += ["-X", request.method]
    words.append(url)
    for name, value in request.headers:
        words += ["-H", f"{name}: {value}" if value else f"{name};"]  # curl writes an empty header with a semicolon
    if request.content_length is not None:
        words += ["-H", f"Content-Length: {request.content_length}"]
    command = shlex.join(words)
    if secured:
        command += f' -H "{CREDENTIALS[request.person]}"'
    if request.body:
        command += f" --data-binary {_body(request.body)}"
    return command


def _finding_lines(finding: Finding, url: str, *, secured: bool) -> Iterator[str]:
    check = finding.check
    yield ""
    yield f"{check.severity.upper()}  {check.name}  ({check.basis}; {check.section})"
    yield f"  our opinion: {check.sentence}" if check.basis == "opinion" else f'  "{check.sentence}"'
    for proof in finding.proofs[:SHOWN_PROOFS]:
        yield f"  - {proof.description}"
        yield f"    {curl(url, proof.exchange.request, secured=secured)}"
    if len(finding.proofs) > SHOWN_PROOFS:
        yield f"  - and {len(finding.proofs) - SHOWN_PROOFS} more: --json"


def _passed(report: Report) -> Iterator[str]:
    for name in report.passed:
        count = report.without_verdict.get(name)
        yield f"{name} ({count} requests got no verdict)" if count else name


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
    request = proof.exchange.request
    response = proof.exchange.response
    return {
        "what": proof.description,
        "request": {
            "method": request.method,
            "headers": [list(pair) for pair in request.headers],
            "body": base64.b64encode(request.body).decode(),
            "credentials": request.person,
        },
        "response": {
            "status": response.status,
            "headers": dict(response.headers),
            "body": base64.b64encode(response.body).decode(),
        },
    }


def _body(body: bytes) -> str:
    """Return a body as a word of the shell; bytes that are no text in base64."""
    if len(body) > MAX_BODY_CHARS:
        return f"@body  # {len(body)} bytes, whole in --json"
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return shlex.quote(text)
    return f'"$(echo {base64.b64encode(body).decode()} | base64 -d)"'
