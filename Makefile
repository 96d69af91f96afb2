# Two commands on a fresh machine: `make demo` and `make test`. Both make .venv and install what constraints.txt pins.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLIENTS := accelerate lightning mlflow-skinny optuna "ray[tune]" skorch tensorboard wandb

.PHONY: demo test test-triton test-integrations test-versions lint bench attack docs release-check clean

demo: $(INSTALLED)
	$(BIN)/lossmith compare --seeds 8

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

# Triton is a gigabyte, so it is in a folder of its own. On a machine without a GPU its interpreter runs the kernels, slowly.
test-triton: $(INSTALLED) .triton
	PYTHONPATH=.triton TRITON_INTERPRET=1 $(BIN)/python -m pytest -n 2 -q tests/test_triton.py
	PYTHONPATH=.triton TRITON_INTERPRET=1 LOSSMITH_KERNELS=triton $(BIN)/python -m pytest -n 2 -q tests/test_top_k.py
	PYTHONPATH=.triton TRITON_INTERPRET=1 LOSSMITH_KERNELS=triton $(BIN)/python -m pytest -n 2 -q tests/test_contract.py

.triton:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt --target $@ triton

# Clusters, and other trainers: an environment of its own, so that the usual one stays small.
test-integrations: .venv-integrations/.installed
	SCIPY_ARRAY_API=1 .venv-integrations/bin/python -m pytest -q tests/integrations

.venv-integrations/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,cluster]" $(CLIENTS)
	touch $@

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

# The site, in docs/_build/html, each time anew: pages that are left from before would have links to what is gone. Tutorials are run
# when they change; a broken link or reference is an error.
docs: .docs/.installed
	rm -rf docs/_build/html
	.docs/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.docs/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .docs
	.docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	.docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# Wheel and sdist, each installed into an environment of its own outside of the checkout, and used there.
release-check:
	$(PYTHON) tests/release.py

clean:
	rm -rf $(VENV) .venv-integrations

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Lossmith needs Python 3.11 or later: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@
