"""Asks the users of clients without elicitation: through a form of the host (MCP Apps), or through the model.

    answer_tools   the second tools, `<tool>-form` and `<tool>-answer`, which take the answers and the state
    asking         the choice between them, and the result that has the question and a sealed state
    answer_calls   turns a call of an answer tool into a call of the tool that asked
    listings       the lists for such clients: with answer tools and the form
    form           the page with the form
    hosts          clients that stop at a round without a question

A function whose client declares elicitation imports nothing of this package.
"""
