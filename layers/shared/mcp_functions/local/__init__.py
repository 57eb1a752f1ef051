"""The local harness: API Gateway, Lambda and KMS on this machine's loopback, in front of the same functions.

Not a fake of the toolkit but of its surroundings: no branch in shipped code knows that it runs here. It is not in the
deployed layer.
"""

from __future__ import annotations

from mcp_functions.local.harness import Harness
from mcp_functions.local.lambdas import Invocation
from mcp_functions.local.problems import Problem

__all__ = ["Harness", "Invocation", "Problem"]
