"""Asks anywhere: what happens to a question of a tool whose client declares no elicitation.

A rung is a way to ask. The ladder goes down from elicitation, over a form of the host, to the model, which asks in
words.

    rungs        chooses the rung for each request
    asking       writes the complete result that carries the question, with a sealed state
    companions   the tools `<tool>-form` and `<tool>-answer`, through which the answer and the state come back
    listings     changes the lists for such clients: companions, forms
    form         the page with the form

A function whose client declares elicitation imports nothing of this package.
"""
