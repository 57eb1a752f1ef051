"""The desk of an author: the command `mcp-functions`, the local server and its page, new projects, and tests.

    from mcp_functions_harness.testing import Conversation, deployed

It puts API Gateway, Lambda, KMS and DynamoDB on loopback around the same functions. It replaces AWS and never the
toolkit: deployed code has no branch for it. No layer contains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions import lazy_names

if TYPE_CHECKING:
    from mcp_functions_harness.harness import Harness
    from mcp_functions_harness.lambdas.service import Invocation
    from mcp_functions_harness.problems import Problem

__all__ = ["Harness", "Invocation", "Problem"]

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    # Each name is imported at its first use: pytest loads the plugin, and so this package, in every project.
    __getattr__ = lazy_names(__name__, {"harness": "Harness", "lambdas.service": "Invocation", "problems": "Problem"})
