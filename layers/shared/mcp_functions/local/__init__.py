"""The local harness: API Gateway, Lambda, KMS and DynamoDB on loopback, with the same functions behind them.

It replaces AWS and never the toolkit: deployed code has no branch for it. The deployed layer does not contain it.
"""

from mcp_functions.local.harness import Harness
from mcp_functions.local.lambdas.service import Invocation
from mcp_functions.local.problems import Problem

__all__ = ["Harness", "Invocation", "Problem"]
