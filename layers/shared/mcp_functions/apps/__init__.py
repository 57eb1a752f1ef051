"""Asks anywhere: what happens to a question of a tool whose client declares no elicitation.

The first way to ask is elicitation. A client without it may have one of two channels: a form of its host, or its model,
which asks in words.

    channels     chooses the channel for each request
    asking       writes the complete result that carries the question, with a sealed state
    companions   the tools `<tool>-form` and `<tool>-answer`, through which the answer and the state come back
    listings     changes the lists for such clients: companions, forms
    form         the page with the form

A function whose client declares elicitation imports nothing of this package.
"""
