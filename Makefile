# The one door: every target sets up what it needs, from nothing but python3 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# What is installed: broker, SDK and command line; or all that and the development tools.
SERVER := $(VENV)/.server-installed
DEV := $(VENV)/.dev-installed

# Two test files at a time, except where brokers are killed and waits are measured: one by one.
JOBS ?= 2
SEEDS ?= 300
SEED ?=
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo serve check test prove sim bench bench-quick proto docs fmt constraints clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1	/' | expand -t 20

$(BIN)/python: scripts/prerequisites.sh
	@bash scripts/prerequisites.sh $(PYTHON)
	@echo "fila: making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(SERVER): $(BIN)/python pyproject.toml constraints.txt
	@echo "fila: installing the broker into $(VENV)"
	@$(PIP) -e '.[server]'
	@touch $@

$(DEV): $(BIN)/python pyproject.toml constraints.txt
	@echo "fila: installing the broker and the development tools into $(VENV)"
	@$(PIP) -e '.[all,dev]'
	@touch $@ $(SERVER)

setup: $(DEV) ## virtual environment with everything for development

demo: $(SERVER) ## watch fair scheduling on a real broker
	@$(BIN)/fila demo $(ARGS) || [ $$? -eq 130 ]

serve: $(SERVER) ## a broker on localhost:5555, data in ./fila-data
	@$(BIN)/fila-server $(ARGS) || [ $$? -eq 130 ]

check: $(DEV) ## format, lint, types, import contracts, wire compatibility
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/proto.py --check
	$(BIN)/pytest -q tests/test_tidy.py tests/test_public_api.py tests/contract/test_fixed_contract.py

test: $(DEV) ## everything, long proofs at reduced count; at most 15 minutes
	@status=0; \
	$(BIN)/pytest -n $(JOBS) --dist loadfile --ignore tests/integration $(ARGS) || status=1; \
	$(BIN)/pytest tests/integration $(ARGS) || status=1; \
	exit $$status

prove: $(DEV) ## the long proofs at full length, into proof/
	FILA_PROVE=1 $(BIN)/pytest -m proof --timeout 7200 $(ARGS)

sim: $(DEV) ## the simulation; SEEDS=1000 for more, SEED=17 to replay one
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

bench: $(DEV) ## speed, in full
	$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(DEV) ## speed, in a minute
	$(BIN)/python -m benchmarks --quick $(ARGS)

proto: $(DEV) ## generate src/fila/wire/_pb from proto/
	$(BIN)/python scripts/proto.py

docs: $(DEV) ## generate the reference and check the documentation
	$(BIN)/python scripts/reference.py
	git diff --exit-code --stat -- docs/reference
	$(BIN)/pytest -q tests/acceptance/test_docs.py

fmt: $(DEV) ## format and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

constraints: ## renew constraints.txt with the newest versions
	bash scripts/constraints.sh $(PYTHON)

clean: ## remove what was made here
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +
