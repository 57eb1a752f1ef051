"""What a hostile client can try against an MCP server of 2026-07-28, whoever made it.

For a server of one's own. It knows the protocol and nothing of this toolkit: no other module of the package is imported
here, so that no mistake can agree with itself. A finding is reported only if an answer of the server proves it.
"""

from mcp_functions.attack.checks import CHECKS
from mcp_functions.attack.findings import Basis, Check, Finding, Report, Severity
from mcp_functions.attack.hunt import Bounds, Hunt, Target
from mcp_functions.attack.running import attack

__all__ = ["CHECKS", "Basis", "Bounds", "Check", "Finding", "Hunt", "Report", "Severity", "Target", "attack"]
