# Two commands: `make run` starts everything and keeps it running, `make test` runs every test.
# Settings are passed as they are to the service: make run ENGRAM_PORT=9000 ENGRAM_DATA_DIR=/var/lib/engram
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What `make test` says to pytest where nobody says anything else (PYTEST_ARGS=...): all tests, by as many processes as
# tests/conftest.py chooses for this machine, each with servers of its own. A file is one process's work, so that what
# a module sets up is set up once; the files come in the order in which conftest.py puts them. At the end stand the
# tests that took longest: of those that take ten seconds in one process, look which could do with less.
PYTEST_ARGS ?= -n auto --dist loadfile --no-loadscope-reorder --durations 15

.PHONY: run test check format docs lock install clean

run: install
	@exec $(BIN)/engram up --sample

test: install
	@exec $(BIN)/pytest $(PYTEST_ARGS)

check: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/engram openapi --check
	@$(BIN)/python docs/settings.py --check

format: install
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: install
	@$(BIN)/engram openapi
	@$(BIN)/python docs/settings.py

# What the image installs, each file by its hash. It needs uv; UV_ARGS may name where torch's CPU wheel is. Torch and what
# its wheel with CUDA brings along are left out: the Dockerfile says why.
CUDA := cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc \
	nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver \
	nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx \
	triton
lock:
	@echo setuptools | uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		$(addprefix --no-emit-package ,torch $(CUDA)) $(UV_ARGS) --output-file requirements.lock pyproject.toml -

install: $(STAMP)

# Scripts in a virtual environment name its path and its Python: after a move of the checkout or an upgrade of
# Python they no longer start, and it is made anew.
ifneq "$(shell cat $(STAMP) 2>/dev/null; $(BIN)/python -c '' 2>/dev/null || echo gone)" "$(CURDIR)"
.PHONY: $(STAMP)
CLEAR := $(if $(wildcard $(STAMP)),--clear)
endif

$(STAMP): pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here; name your Python: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit("Engram needs Python 3.11 or newer, found " + sys.version.split()[0] + "; name another: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV) (about a minute, more where wheels must be downloaded) ..."
	@"$(PYTHON)" -m venv $(CLEAR) $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@echo "$(CURDIR)" > $@

clean:
	rm -rf $(VENV)
