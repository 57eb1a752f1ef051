"""`python -m tests.peers python` (or `typescript`): what the attacker finds in servers of other SDKs.

The TypeScript servers need `npm install` in this folder first.
"""

from __future__ import annotations

import sys

from mcp_functions.attack import report_writer
from tests.peers.running import COMMANDS, attacked, row

reports = attacked(COMMANDS[sys.argv[1]])
for configuration, report in reports.items():
    sys.stdout.write(f"\n######## {configuration}\n{report_writer.as_text(report, secured=False)}")
sys.stdout.write("\n" + "\n".join(row(configuration, report) for configuration, report in reports.items()) + "\n")
