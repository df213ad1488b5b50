"""How pages become a site: those beside this file, the README, and measurements. Nothing is loaded from elsewhere.

The source directory is the repository, so that links between these folders hold: `make site`.
"""

project = "Engram"
author = copyright = "Engram contributors"
extensions = ["myst_parser"]
include_patterns = ["docs/**", "evaluation/measurements/*", "README.md"]
exclude_patterns = [".*", "build", "console", "clients", "tests", "**/node_modules"]
root_doc = "docs/index"
html_theme = "furo"
html_title = "Engram"
html_show_sphinx = False
# `page.md#heading` leads to that heading, as it does where the files are read as they are.
myst_heading_anchors = 3
# Colours are the only thing that a language's name would bring; output and JSON lines have no lexer that fits.
suppress_warnings = ["misc.highlighting_failure"]
