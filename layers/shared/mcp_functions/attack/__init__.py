"""Attacks that a hostile client can try against any MCP server of revision 2026-07-28: use it on your own.

It imports no other room of this package: a mistake in the toolkit could not be found by code that shares it. It
reports a finding only if a response of the server proves it.
"""

from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.findings import Basis, Check, Finding, Report, Severity
from mcp_functions.attack.runner import attack
from mcp_functions.attack.scan import Bounds, Scan, Target

__all__ = ["CHECKS", "Basis", "Bounds", "Check", "Finding", "Report", "Scan", "Severity", "Target", "attack"]
