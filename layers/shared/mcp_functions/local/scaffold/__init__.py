"""`init` writes a project of one's own, `new` adds a function to it: folder, block, policy, test, events, catalog.

What they write stands beside this file, as text with @placeholders@: project/ is a whole project without a function,
samples/ are functions with their tests and their conversations, and block.yaml.in is what deploys one.
"""

from __future__ import annotations

from mcp_functions.local.scaffold.adding import new
from mcp_functions.local.scaffold.beginning import init
from mcp_functions.local.scaffold.commands import add_commands

__all__ = ["add_commands", "init", "new"]
