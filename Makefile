# Every target sets up what it needs in a virtual environment of its own; nothing has to be
# activated first. Set PYTHON to choose the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
GRID_VENV := .venv-grid
LABEL_STUDIO_VENV := .venv-label-studio
BIN := $(VENV)/bin
# The constraint keeps the GPU libraries away, which are gigabytes.
PIP_INSTALL := -m pip install --disable-pip-version-check --quiet -c constraints/torch.txt --editable
# What other versions of the libraries can break: whatever touches arrays, frames and files. The
# statistics of methods and learners are the same arithmetic everywhere, and stay in `make test`.
GRID_TESTS := tests/core tests/io tests/storage tests/metrics tests/kernels tests/engines \
	tests/packs $(wildcard tests/kinds/*/test_*.py tests/kinds/*/kernels tests/kinds/*/metrics) \
	tests/inference tests/simulate tests/cli tests/test_api.py tests/test_grid.py

KERNELS := src/wisecrowd/kernels tests/kernels \
	$(wildcard src/wisecrowd/kinds/*/kernels* tests/kinds/*/kernels tests/kinds/*/test_kernels.py)

# The real data sets, where they lie beside the project; without them their tests are skipped.
export WISECROWD_DATA ?= $(abspath $(wildcard ../shared/data))

# Python keeps compiled modules here, also where its user wants none elsewhere: collecting the tests
# takes half the time, and every command that a test starts is faster.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-all lint test-kernels test-data test-deep test-processors test-grid trust mutation browser java spark docs screenshot format release-check wheel bench replays label-studio clean

help: ## show this help
	@grep -E '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

demo: $(VENV)/.installed-demo ## run the whole job on a simulated crowd, and say where the results are
	$(BIN)/python examples/demo.py

# The linters use one core. Meanwhile, the tests of the kernels compile these for all other tests.
test: $(VENV)/.installed-dev ## lint, format, types, layers, and all tests that take up to a quarter of a second
	$(MAKE) --no-print-directory --jobs=2 lint test-kernels
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not spark and not slow" $(KERNELS:%=--ignore=%)

test-slow: $(VENV)/.installed-dev ## all other tests (tests/slow_tests.txt)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not spark and slow"

test-all: test test-slow ## everything that must hold

lint: $(VENV)/.installed-dev ## lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

test-kernels: $(VENV)/.installed-dev ## the tests of the compiled kernels
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow" $(KERNELS)

test-data: $(VENV)/.installed-dev ## the tests on real data sets; WISECROWD_DATA names their directory
	@test -d "$(WISECROWD_DATA)" || { echo "No data: set WISECROWD_DATA to the directory of the real data sets." >&2; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m data tests

test-deep: $(VENV)/.installed-dev ## the property tests with 1000 examples each, on all methods
	HYPOTHESIS_PROFILE=deep OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m hypothesis -n auto --dist worksteal tests

test-processors: $(VENV)/.installed-dev ## the numeric tests as other processors would run them
	$(BIN)/python tests/processors.py

trust: $(VENV)/.installed-dev ## count what goes wrong: bad inputs, invariance, crashes, files, calibration
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.run trust

mutation: $(VENV)/.installed-mutation ## put small mistakes into the code, and count those that the tests notice
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutation

test-grid: $(GRID_VENV)/lowest/.installed-grid $(GRID_VENV)/newest/.installed-grid ## the quick tests with the lowest and the newest versions of the libraries
	for versions in lowest newest; do \
	  echo "With the $$versions versions:"; \
	  OMP_NUM_THREADS=1 $(GRID_VENV)/$$versions/bin/python -m pytest -q -n auto --dist worksteal $(GRID_TESTS) || exit 1; \
	done

# Without torch, whose CPU build is not offered for every Python: its tests are skipped. PYENV_VERSION
# lets pyenv find the interpreter; without pyenv it means nothing.
test-python-%: ## the quick tests with another Python, where there is one: make test-python-3.13
	@export PYENV_VERSION=$$(pyenv latest $* 2>/dev/null); \
	if python$* -c pass 2>/dev/null; then \
	  $(MAKE) --no-print-directory $(GRID_VENV)/python$*/.installed-grid PYTHON=python$* && \
	  OMP_NUM_THREADS=1 $(GRID_VENV)/python$*/bin/python -m pytest -q -n auto --dist worksteal -m "not slow" $(GRID_TESTS); \
	else echo "There is no python$* here: not tested with it."; fi

browser: $(VENV)/.installed-dev ## install what the tests of the report in a real browser need
	command -v chromium || { apt-get update -qq && apt-get install -qq --no-install-recommends chromium; }
	$(BIN)/python $(PIP_INSTALL) '.[browser]'
	npm install --silent --no-save --prefix $(VENV)/browser axe-core@4

java: ## install a Java runtime for Spark, where there is none
	command -v java || { apt-get update -qq && \
	  { apt-get install -qq --no-install-recommends default-jre-headless || \
	    apt-get install -qq --no-install-recommends openjdk-17-jre-headless; }; }

spark: java $(VENV)/.installed-spark ## the engine spark on this machine: its tests, and a demo with 10^7 labels
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m spark tests/packs
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.speed.spark

docs: $(VENV)/.installed-dev ## build the documentation site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open $(CURDIR)/build/site/index.html"

screenshot: browser ## take the picture of the demo's report that the README shows
	$(BIN)/python examples/demo.py
	$(BIN)/python docs/_site/screenshot.py demo-output/report.html docs/images/report.png

release-check: ## the release checklist: tree, version, build, metadata, an empty environment, demo, quick tests
	$(PYTHON) tools/release.py $(GRID_TESTS)

wheel: ## build the wheel and try it in an empty environment; a release needs release-check
	$(PYTHON) tools/release.py --wheel

format: $(VENV)/.installed-dev ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH_VENV)/.installed-bench ## measure speed and accuracy, beside crowd-kit in the same process
	$(BENCH_VENV)/bin/python -m benchmarks.run

replays: $(BENCH_VENV)/.installed-bench ## run the papers' experiments again (replays/README.md)
	$(BENCH_VENV)/bin/python -m replays.feature_free all
	$(BENCH_VENV)/bin/python -m replays.tutorial all
	$(BENCH_VENV)/bin/python -m replays.fairness all
	$(BENCH_VENV)/bin/python -m replays.likelihood_family all
	$(BENCH_VENV)/bin/python -m replays.with_features all

label-studio: $(VENV)/.installed-dev $(LABEL_STUDIO_VENV)/.installed-server ## a real Label Studio: a whole campaign, killed and continued; exports and predictions
	PATH="$(abspath $(LABEL_STUDIO_VENV))/bin:$$PATH" OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.trust.label_studio_campaign
	PATH="$(abspath $(LABEL_STUDIO_VENV))/bin:$$PATH" OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.trust.label_studio_server

clean: ## remove environments, caches and everything that was built
	rm -rf $(VENV) $(BENCH_VENV) $(GRID_VENV) $(LABEL_STUDIO_VENV) build dist demo-output benchmarks/output replays/output
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written only after the step before it succeeded, and grows old with pyproject.toml.
%/.created:
	@echo "Creating the virtual environment $* with $(PYTHON)"
	$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(sys.version_info < (3, 11) and f"wisecrowd needs Python 3.11 or newer, this is {v}: set PYTHON=...")'
	$(PYTHON) -m venv $*
	@touch $@

$(VENV)/.installed-demo: $(VENV)/.created pyproject.toml
	@echo "Installing wisecrowd and what the demo needs into $(VENV)"
	$(BIN)/python $(PIP_INSTALL) '.[demo,deep,report]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml
	@echo "Installing wisecrowd and the development tools into $(VENV)"
	$(BIN)/python $(PIP_INSTALL) '.[dev,deep,report]'
	@touch $@

$(VENV)/.installed-mutation: $(VENV)/.installed-dev
	$(BIN)/python $(PIP_INSTALL) '.[mutation]'
	@touch $@

$(VENV)/.installed-spark: $(VENV)/.installed-dev
	@echo "Installing pyspark into $(VENV)"
	$(BIN)/python $(PIP_INSTALL) '.[spark]' 'pyspark[connect]'
	@touch $@

$(BENCH_VENV)/.installed-bench: $(BENCH_VENV)/.created pyproject.toml
	@echo "Installing wisecrowd and what it is measured against into $(BENCH_VENV)"
	$(BENCH_VENV)/bin/python $(PIP_INSTALL) '.[bench,deep,report]'
	@touch $@

# The version that the guide was written with; a gigabyte, and not to be mixed with our libraries.
$(LABEL_STUDIO_VENV)/.installed-server: $(LABEL_STUDIO_VENV)/.created
	@echo "Installing Label Studio into $(LABEL_STUDIO_VENV)"
	$(LABEL_STUDIO_VENV)/bin/python -m pip install --disable-pip-version-check --quiet label-studio==1.23.2
	@touch $@

$(GRID_VENV)/python%/.installed-grid: $(GRID_VENV)/python%/.created pyproject.toml
	@echo "Installing wisecrowd for Python $*, without torch"
	$(@D)/bin/python $(PIP_INSTALL) '.[dev,report]'
	@touch $@

# "Newest" is as of the installation: `rm -r .venv-grid/newest` to look again.
$(GRID_VENV)/lowest/.installed-grid: $(GRID_VENV)/lowest/.created pyproject.toml constraints/lowest.txt
	@echo "Installing wisecrowd with the lowest versions it supports"
	$(@D)/bin/python $(PIP_INSTALL) '.[dev,deep,report]' -c constraints/lowest.txt
	@touch $@

$(GRID_VENV)/newest/.installed-grid: $(GRID_VENV)/newest/.created pyproject.toml
	@echo "Installing wisecrowd with the newest versions there are"
	$(@D)/bin/python $(PIP_INSTALL) '.[dev,deep,report]' --upgrade --upgrade-strategy eager
	@touch $@

.PRECIOUS: %/.created
