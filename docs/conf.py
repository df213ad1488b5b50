"""How the pages beside this file become a site: `make site`. Nothing in it is loaded from elsewhere."""

project = "Engram"
author = copyright = "Engram contributors"
extensions = ["myst_parser"]
exclude_patterns = ["settings.py"]
html_theme = "furo"
html_title = "Engram"
html_show_sphinx = False
# `page.md#heading` leads to that heading, as it does where the files are read as they are.
myst_heading_anchors = 3
# Colours are the only thing that a language's name would bring; output and JSON lines have no lexer that fits.
suppress_warnings = ["misc.highlighting_failure"]
