"""Asks the users of clients without elicitation: through a form of the host (MCP Apps), or through the model.

    channels         the two ways, and the choice for each request
    asking           the result that has the question and a sealed state
    companions       the second tools, `<tool>-form` and `<tool>-answer`, which take the answer and the state
    companion_calls  turns a call of a companion into a call of the tool that asked
    unasked          how a call ends whose user cannot be asked, and questions as texts
    listings         the lists for such clients: with companions and the form
    form             the page with the form
    hosts            clients that stop at a round without a question
    tool_options     the options of `@tool` about asking and apps

A function whose client declares elicitation imports nothing of this package.
"""
