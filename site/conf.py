project = "mcp-functions"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "layers/shared/mcp_functions/*/*.md"]
myst_heading_anchors = 4
html_theme = "furo"
suppress_warnings=[]
