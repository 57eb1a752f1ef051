"""The authorization front: hosts sign people in at any OpenID Connect provider, and no session is kept."""
