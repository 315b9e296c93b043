PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
READY := .venv/.ready
PEERS := .venv-peers
# Rewritten asserts are kept between runs, whatever the environment says about bytecode.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 4 --dist loadgroup
MINUTES ?= 60
N ?= 100
ROUNDS ?= 5

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all unit unit-all lint type format docs notebooks bench bench-peers soak torture clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install: $(READY) ## create .venv and install vaezoo with its development tools

$(READY): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable '.[dev]'
	@touch $@

demo: $(READY) ## train LaRVAE on rendered 3DShapes for a few minutes; pictures, scores and a report at the end
	$(BIN)/vaezoo fit --config experiments/larvae_3dshapes.yaml --experiment demo --model.nuisance_dim 0 \
		--model.lr 1e-3 --data.batch_size 16 --data.source render --data.val_size 2000 \
		--trainer.max_steps 5000 --trainer.val_check_interval 2500
	$(BIN)/vaezoo report runs/demo -o runs/demo/report.html
	@echo "sliders in a browser: $(BIN)/vaezoo explore $$(ls -d runs/demo/2* | tail -n 1) --open (needs the extra explore, which make installs)"

# mypy runs beside the tests; whatever fails, the others end and say so first.
test: $(READY) ## run lint, type checks and the tests, in minutes
	@$(MAKE) --no-print-directory --jobs=2 lint type unit

test-all: $(READY) ## make test plus the slow tests: kills, compiled models, more fuzzing, smoke budgets of the studies
	@$(MAKE) --no-print-directory --jobs=2 lint type unit-all

unit: $(READY) ## run the tests alone
	$(PYTEST) -m 'not slow'

unit-all: $(READY) ## run all tests alone, slow ones included
	$(PYTEST)

lint: $(READY) ## check style with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(READY) ## check types with mypy --strict
	$(BIN)/mypy

format: $(READY) ## rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## build the site in docs/_build/html; a warning is an error
	rm -rf docs/_build docs/generated
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

notebooks: $(READY) ## run docs/notebooks and save them with their outputs
	$(BIN)/python -m tests.notebooks

bench: $(READY) ## measure ratios of speed, side by side in one run
	$(BIN)/python -m tests.bench

# A peer that cannot be installed is a row that says so, and is tried again the next time.
$(PEERS)/.ready: $(CONSTRAINTS)
	$(PYTHON) -m venv $(PEERS)
	@ready=true; for peer in pythae==0.1.2 disent==0.8.0; do \
		$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) $$peer \
			|| { echo "$$peer cannot be installed"; ready=false; }; \
	done; if $$ready; then touch $@; fi

bench-peers: STEPS ?= 100
bench-peers: $(READY) $(PEERS)/.ready ## measure vaezoo beside pythae and disent (ROUNDS=5, STEPS=100)
	$(BIN)/python -m tests.bench.peers --peers $(PEERS)/bin/python --rounds $(ROUNDS) --steps $(STEPS)

soak: STEPS ?= 1000000
soak: $(READY) ## train for an hour (MINUTES=, STEPS=) with everything on; fails if memory, files or disk usage grow
	$(BIN)/python -m tests.soak --steps $(STEPS) --minutes $(MINUTES)

torture: $(READY) ## kill N random runs again and again (N=100); fails if one ends differently from an undisturbed run
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture --trials $(N)

clean: ## remove .venv and everything that tools left behind
	rm -rf .venv $(PEERS) .mypy_cache .pytest_cache .ruff_cache build dist docs/_build docs/generated *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
