"""The sign-in front: hosts sign people in at your provider (AuthMode oauth). Nothing of a sign-in is kept here."""

from mcp_functions import serve_oauth

handler = serve_oauth()
