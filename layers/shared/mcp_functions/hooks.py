"""What the hooks of `serve` get: `around` gets a Call, and `audit` an AuditRecord."""

from typing import TYPE_CHECKING

from mcp_functions import lazy_names

if TYPE_CHECKING:
    from mcp_functions.handlers.hooks import Call
    from mcp_functions.rounds.audit import AuditRecord

__all__ = ["AuditRecord", "Call"]

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__ = lazy_names(__name__, {".handlers.hooks": "Call", ".rounds.audit": "AuditRecord"})
