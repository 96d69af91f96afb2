# Two commands on a fresh machine: `make demo` and `make test`. Both make .venv and install what constraints.txt pins.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-triton test-versions lint bench attack clean

demo: $(INSTALLED)
	$(BIN)/lossmith compare --seeds 8

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 -q

# Triton is a gigabyte, so it is in a folder of its own. On a machine without a GPU its interpreter runs the kernels, slowly.
test-triton: $(INSTALLED) .triton
	PYTHONPATH=.triton TRITON_INTERPRET=1 $(BIN)/python -m pytest -n 2 -q tests/test_triton.py
	PYTHONPATH=.triton TRITON_INTERPRET=1 LOSSMITH_KERNELS=triton $(BIN)/python -m pytest -n 2 -q tests/test_contract.py

.triton:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt --target $@ triton

test-versions:
	$(PYTHON) tests/versions.py

lint: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.losses

attack: $(INSTALLED)
	$(BIN)/python -m attack --minutes 10

clean:
	rm -rf $(VENV)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Lossmith needs Python 3.11 or later: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
