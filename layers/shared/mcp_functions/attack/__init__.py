"""Attacks that a hostile client can try against any MCP server of revision 2026-07-28: use it on your own.

    find the calls that ask the client questions -> checks: send wrong requests, compare the responses -> report

A server that asks a question gives the client a state (`requestState`), and each further request (a round) returns it
with the answers. Most attacks change or misuse this state. A finding is reported only if a response proves it.

This package imports no other package of the toolkit: code that shared a mistake of the toolkit could not find it.
"""

from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.findings import Basis, Check, Finding, Report, Severity
from mcp_functions.attack.runner import attack
from mcp_functions.attack.scan import Bounds, Scan, Target

__all__ = ["CHECKS", "Basis", "Bounds", "Check", "Finding", "Report", "Scan", "Severity", "Target", "attack"]
