"""`demo`: an official client holds a conversation, and the terminal shows the messages and the state.

`run` of each demo raises a Problem that its user can correct, or a DemoError if the conversation was not as expected.
"""
