"""The sign-in front of AuthMode oauth, which keeps no session. `mcp-functions auth oauth` deploys it."""

from mcp_functions import serve_oauth

handler = serve_oauth()
