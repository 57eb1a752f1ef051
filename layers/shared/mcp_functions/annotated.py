"""What an annotation says about an argument or a field of a form: `seats: Annotated[int, Between(1, 9)]`."""

from typing import TYPE_CHECKING

from mcp_functions import lazy_names

if TYPE_CHECKING:
    from mcp_functions.schemas.annotations import Between, Format, Length, Title, Titles
    from mcp_functions.schemas.arguments import Header
    from mcp_functions.schemas.json_types import Number

__all__ = ["Between", "Format", "Header", "Length", "Number", "Title", "Titles"]

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    _NAMES = {
        ".schemas.annotations": "Between Format Length Title Titles",
        ".schemas.arguments": "Header",
        ".schemas.json_types": "Number",
    }
    __getattr__ = lazy_names(__name__, _NAMES)
