"""The arguments of a step as a digest, which shows a later round whether it calls the step with the same arguments.

step("reserve", reserve, city)    the record has a digest of [[city], {}]
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from mcp_functions.protocol.json_writer import base64url
from mcp_functions.rounds.step_results import to_record
from mcp_functions.seal.canonical_json import canonical_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DIGEST_BYTES = 16  # enough that two lists of arguments are never equal by chance; every state carries the digests


def digest_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the digest of a call's arguments.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot carry them.
    """
    # A later round may run in another process, where a set has another order. `to_record` may write sets as they are.
    arguments = to_record(_sort_sets([args, kwargs]))
    digest = canonical_digest(label=b"", value=arguments)
    return base64url(digest[:DIGEST_BYTES])


def _sort_sets(value: object) -> object:
    """Return a value with a sorted list for each set in it, also inside models and dataclasses."""
    if isinstance(value, set | frozenset):
        return sorted(map(_sort_sets, value), key=repr)  # by `repr`, because members of two types do not compare
    if isinstance(value, dict):
        return {key: _sort_sets(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_sort_sets(member) for member in value]
    if hasattr(value, "model_dump"):
        return _sort_sets(value.model_dump(by_alias=True, warnings=False))  # a warning would quote values in the log
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _sort_sets(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
