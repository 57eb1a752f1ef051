"""Asks anywhere: what happens to a question of a tool whose client declares no elicitation.

`rungs` chooses the way for each request. `asking` writes the complete results that carry a question. `companions` are
the tools through which the answer comes back. `listings` changes the lists for such clients, and `form` is the page.
A function whose client declares elicitation imports nothing of this room.
"""
