# Two commands: `make run` starts everything and keeps it running, `make test` runs every test.
PYTHON ?= python3
VENV := .venv
ENGRAM := $(VENV)/bin/engram
STAMP := $(VENV)/.installed

.PHONY: run test check install clean

run: install
	@exec $(ENGRAM) up --sample

test: install
	@$(VENV)/bin/pytest $(PYTEST_ARGS)

check: install
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(ENGRAM) openapi --check

install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Engram needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Installing into $(VENV) (about a minute, more where wheels must be downloaded) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV)
