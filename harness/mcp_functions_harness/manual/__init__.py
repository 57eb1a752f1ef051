"""The manual: the pages of the repository, which the wheel contains unchanged.

contents    lists the pages in their order, and finds a page and its sections
links       writes the links of a page as words, for the terminal

`site/conf.py` builds the site from the same list. The command `docs` renders a page when a user asks for it.
"""
