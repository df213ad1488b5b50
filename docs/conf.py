"""Settings of Sphinx for the site of `make site`: docs/, measurements, and the README of each package.

The source directory is the repository, so every link between these pages is checked.
"""

project = "Engram"
author = copyright = "Engram contributors"
extensions = ["myst_parser"]
include_patterns = ["docs/**", "evaluation/measurements/*", "*.md", "**/README.md"]
exclude_patterns = [".*", "build", "CHANGELOG.md", "**/node_modules"]
root_doc = "docs/index"
html_theme = "furo"
html_title = "Engram"
html_show_sphinx = False
# `page.md#heading` leads to that heading, as it does where the files are read as they are.
myst_heading_anchors = 3
# Colours are the only thing that a language's name would bring; output and JSON lines have no lexer that fits.
# READMEs are checked for their links; the sidebar does not list them.
suppress_warnings = ["misc.highlighting_failure", "toc.not_included"]
