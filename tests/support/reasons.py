"""The reasons for which a state is refused, read from the source of the seal."""

from __future__ import annotations

import re
from pathlib import Path

import mcp_functions
from mcp_functions.seal.claims import BINDING_FIELDS

FOLDER = Path(mcp_functions.__file__).parent / "seal"


def _read_reasons(*modules: str) -> set[str]:
    """Return the reasons of the refusals in some modules."""
    sources = [(FOLDER / f"{module}.py").read_text(encoding="utf-8") for module in modules]
    return {reason for source in sources for reason in re.findall(r'InvalidRequestState\(reason="(\w+)"\)', source)}


TOKEN_REASONS = _read_reasons("token_format", "keyring", "kms", "chunked_encryption")
REQUEST_REASONS = {"shape", "function_has_no_keys"}  # what no specification of a state can name
CLAIM_REASONS = (_read_reasons("claims", "codec_adapter", "request_state") | set(BINDING_FIELDS)) - REQUEST_REASONS
