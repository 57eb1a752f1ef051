"""The endpoint with a clock that may be wrong, in processes that are killed."""

from pathlib import Path

from mcp_functions import serve_catalog
from tests.soak.placing import placed

place = placed("mcp")
handler = place.around(serve_catalog(Path(__file__).with_name("catalog.json"), now=place.clock))
