"""The manual: the pages of the repository, which the wheel carries as they are.

contents    the pages in their order, which the site has too; where a page is, and its sections
links       what a link of a page becomes where nobody can click on it

`site/conf.py` makes the site from the same list. The wheel needs no generator: a page is rendered when somebody asks.
"""
