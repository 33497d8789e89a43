# Every verb bootstraps .venv by itself: with uv where it is installed, else with venv and pip.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test check bench docs format lock

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes -r constraints.txt && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $(READY)

demo: $(READY)
	@$(BIN)/barograph demo

test: $(READY)
	@$(BIN)/python -m pytest

check: $(READY)
	@$(BIN)/ruff check src tests bench
	@$(BIN)/ruff format --check src tests bench
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Figures, each with the command that made it. BAROGRAPH_CORPUS names a folder of recorded sessions.
bench: $(READY)
	$(BIN)/python bench/import_time.py
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/kill.py
	-$(BIN)/python bench/append.py
	-$(BIN)/python bench/space.py
	$(BIN)/python bench/stubs.py
	$(BIN)/python bench/relief.py
	$(BIN)/python bench/nibbling.py
	$(BIN)/python bench/originals.py
	$(BIN)/python bench/digest.py
	$(BIN)/python bench/projection.py
	@if [ -n "$$BAROGRAPH_CORPUS" ]; then set -x; \
	  $(BIN)/barograph replay "$$BAROGRAPH_CORPUS" --price 1.25,0.1 --price 1.25,0.05 --price 1.25,0.025 ; \
	else echo "BAROGRAPH_CORPUS names no folder of recorded sessions: replay skipped." ; fi

docs: $(READY)
	@$(BIN)/mkdocs build --strict --quiet
	@echo "Built site/index.html"

format: $(READY)
	@$(BIN)/ruff check --fix-only src tests bench
	@$(BIN)/ruff format src tests bench

# Renew the pins. The file holds hashes and no index addresses, so any mirror may serve it.
lock:
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o constraints.txt
