# The commands of this repository. Each sets up what it needs first; once set up, only `make lock`, `make dist` and `make
# oldest` use the network, `make vendor`, and `make fuzz` and `make observatory` the first time.

# The interpreter of .venv: by default python3, or a faster build of the same version (.ci/setup.sh).
PYTHON ?=
VENV := .venv/bin
READY := .venv/.ready
# Runs a command with JAVA_HOME naming a Java that Spark can use; installs one where that is allowed.
WITH_JAVA := .ci/java.sh
PYTEST = $(WITH_JAVA) $(VENV)/python -m pytest -n $(JOBS) --dist loadgroup
# Tests of the packages whose coverage has floors. `make test APART=1` leaves them to `make coverage-floors`.
PURE := tests/unit/protocol tests/unit/verifier tests/property tests/vectors tests/fuzz
FOLDERS := node protocol storage verifier analytics clients tests benchmarks examples hatch_build.py

# Git repository for `make demo`; this checkout if empty.
GIT ?=
# More arguments for pytest: make test ARGS='-k session -x'
ARGS ?=
# Processes that run tests side by side.
JOBS ?= 2
# For `make fuzz`: how long all together, and which targets (all if empty).
SECONDS ?= 120
TARGETS ?=
# For what plays histories: the first seed.
SEED ?= 1
# For `make verdicts`: which ones; of today.
VERDICTS_SEED ?= $(shell date +%Y%m%d)
# Other systems that `make observatory` runs, as npm installs them.
PEERS := benchmarks/peers/node_modules/.package-lock.json
# Apart from what `make setup` installs, so that the tests run without it.
FUZZER := .venv/fuzzer

# Without bytecode every worker, daemon and command of the tests compiles all that it imports: a minute of five.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup java demo test test-rest test-all test-pythons coverage coverage-floors check check-format check-lint check-types check-imports format bench decade observatory dist oldest histories verdicts proof promise fuzz hostile powercut bitrot sim sim-long sim-joins nets nets-table crash vectors reference screenshots vendor lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## Make .venv with the locked dependencies and this checkout

$(READY): requirements.lock pyproject.toml clients/python/pyproject.toml .ci/setup.sh hatch_build.py node/ingest/reading.c
	@PYTHON="$(PYTHON)" .ci/setup.sh
	@touch $@

java: ## Find a Java runtime of version 17 or newer for Spark, or install one
	@$(WITH_JAVA)

demo: setup java ## Run the main job: two nodes, a git history, a merge, Spark (GIT=path: another git repository; RELAY=1: by a relay)
	@$(WITH_JAVA) $(VENV)/python examples/demo.py $(if $(GIT),--git "$(GIT)") $(if $(RELAY),--relay)

test: setup java ## Run the quick tests, in some four minutes (JOBS=2 at a time; ARGS='...': more arguments for pytest)
	@$(PYTEST) $(if $(APART),$(addprefix --ignore=,$(PURE))) $(ARGS)

test-rest: setup java ## Run what `make test` leaves out: PostgreSQL, the demo, networks, kills, the wheel, S3, 100 examples
	@$(PYTEST) --tier rest $(ARGS)

test-all: setup java ## Run all tests: the quick ones, then the rest, in twenty minutes
	@$(PYTEST) $(ARGS)
	@$(PYTEST) --tier rest $(ARGS)

test-pythons: setup ## Run quick tests of the core with every newer Python that is here (3.12 to 3.14, on the PATH or of pyenv)
	@.ci/pythons.sh $(JOBS)

coverage: setup java ## Run all tests and measure which branches they reach, subprocesses included
	@.ci/coverage.sh $(JOBS)

coverage-floors: setup java ## Run the tests of the pure packages; fail where they reach less than was written down
	@.ci/coverage.sh $(JOBS) $(PURE)

check: check-format check-lint check-types check-imports ## Check format, lint, types and imports

check-format: setup
	$(VENV)/ruff format --check $(FOLDERS)

check-lint: setup
	$(VENV)/ruff check $(FOLDERS)

check-types: setup
	$(VENV)/mypy --strict $(FOLDERS)

check-imports: setup
	$(VENV)/lint-imports --no-logo

format: setup ## Format the code and fix what ruff can fix
	$(VENV)/ruff check --fix-only $(FOLDERS)
	$(VENV)/ruff format $(FOLDERS)

bench: setup java ## Run the benchmarks: one JSON line per figure
	@set -e; for file in benchmarks/bench_*.py; do $(WITH_JAVA) $(VENV)/python "$$file"; done

decade: setup ## Build a community of ten years, and measure it beside its first (FOLDER=/tmp/ravel-decade, SHARE=0.1: smaller; goes on after a kill)
	@$(VENV)/python -m benchmarks.bench_decade $(or $(FOLDER),/tmp/ravel-decade) $(or $(SHARE),1)

observatory: setup $(PEERS) ## Have Ravel and other systems do the same work in turns, and write the page (ENTRIES=3000, ROUNDS=6; Node.js, npm, git)
	$(VENV)/python -m benchmarks.bench_peers $(or $(ENTRIES),3000) $(or $(ROUNDS),6) >$(dir $(PEERS))figures.jsonl
	@mv $(dir $(PEERS))figures.jsonl benchmarks/peers/figures.jsonl
	@$(VENV)/python -m tests.support.observatory_page

$(PEERS): benchmarks/peers/package-lock.json
	npm ci --prefix benchmarks/peers --ignore-scripts --no-audit --no-fund
	@touch $@

dist: setup ## Build sdist and wheel into dist/, and try the wheel in a fresh environment
	@.ci/dist.sh

oldest: setup ## Read exports with the oldest pandas, polars, DuckDB and PyArrow that the client takes, in a fresh environment
	@PYTHON="$(VENV)/python" .ci/oldest.sh

histories: setup ## Judge all membership histories of five operations as the reference does
	RAVEL_OPERATIONS=5 $(VENV)/pytest -q --tier all tests/unit/verifier/test_membership.py -k small_history -o timeout=1200

promise: setup ## Play histories of whole nodes, and check what they promise each other (BUDGET=600, SEED=n: the first, MUTANTS=1: the table)
	$(VENV)/python -m tests.promise --start $(or $(SEED),1) --processes $(JOBS) $(if $(MUTANTS),--mutants,--budget $(or $(BUDGET),600))

verdicts: setup ## Have two judges written apart agree on COUNT=20000 random histories, and Ravel on a part (seven minutes; VERDICTS_SEED=n)
	@echo "seed $(VERDICTS_SEED)"
	@$(VENV)/python -m tests.verdicts --count $(or $(COUNT),20000) --seed $(VERDICTS_SEED) --js --orders 1 --product 100

proof: setup ## Check the proofs and the model of members, epochs and order with Coq (three minutes; MUTANTS=1: the table of changed rules)
	@command -v coqc >/dev/null || bash -c '. .ci/packages.sh && install_package coq'
	$(VENV)/python -m tests.proof --processes $(JOBS) --seed $(SEED) $(if $(MUTANTS),--mutants)

fuzz: $(FUZZER)/.ready ## Feed every decoder what a coverage-guided fuzzer finds (SECONDS=120, TARGETS='body config')
	@PYTHONPATH=$(FUZZER) $(VENV)/python -m tests.fuzz.harness $(SECONDS) $(TARGETS)

$(FUZZER)/.ready: tests/fuzz/requirements.lock | $(READY)
	@rm -rf $(FUZZER)
	@$(VENV)/python -m pip --quiet --quiet --disable-pip-version-check --no-input install --require-hashes --no-deps \
		--only-binary :all: --target $(FUZZER) -r $< || { \
		echo "make fuzz needs atheris, which has wheels for Python 3.11 to 3.14 on x86-64 Linux; this is" \
			"$$($(VENV)/python --version) on $$(uname -sm). See the message above." >&2; exit 1; }
	@touch $@

hostile: setup ## Let every hostile peer at a real daemon at full speed (SECONDS_EACH=60, ATTACK=name)
	$(VENV)/python -m tests.hostile.run --seconds $(or $(SECONDS_EACH),60) $(if $(ATTACK),--attack $(ATTACK))

powercut: setup ## Record a daemon's writes, replay power cuts, and start a node on each (STATES=10000, SEED=n, LIES=1: syncs lie)
	$(VENV)/python -m tests.powercut.run --states $(or $(STATES),10000) --seed $(or $(SEED),0) $(if $(LIES),--lies)

bitrot: setup ## Flip bits of a node's files; all damage must be noticed, and healed by a peer (FLIPS=2000, SEED=n)
	$(VENV)/python -m tests.powercut.bitrot --flips $(or $(FLIPS),2000) --seed $(or $(SEED),0)

sim: setup ## Replay one simulated run of many sessions (SEED=n)
	$(VENV)/python -m tests.simulation.run --seed $(or $(SEED),0)

sim-long: setup ## Simulate many nodes with cuts, crashes and liars, ended epochs and turns of topics (COUNT=500, SEED=n)
	$(VENV)/python -m tests.simulation.run --count $(or $(COUNT),500) --seed $(or $(SEED),0)

sim-joins: setup ## Have newcomers join told histories by liars' windows, cuts and bundles, and end as full replicas (COUNT=500, SEED=n)
	$(VENV)/python -m tests.simulation.joins --count $(or $(COUNT),500) --seed $(or $(SEED),0)

crash: setup ## Kill two nodes at any moment, again and again; all they acknowledged must be there (ROUNDS=200, SEED=n, POSTGRESQL=1)
	$(VENV)/python -m tests.crash.rounds --rounds $(or $(ROUNDS),200) --seed $(or $(SEED),0) $(if $(POSTGRESQL),--postgresql)

nets: setup ## Run daemons on lines that are cut for minutes and lose a fifth, and send a GiB between symmetric routers (a quarter of an hour; as root; MIB=256: less)
	$(VENV)/python -m pytest -q tests/networks/long_networks.py tests/networks/long_reach.py $(ARGS)

nets-table: setup ## Try pairs of home routers: which path two members find, and how soon (four minutes; as root; ARGS='--only symmetric')
	$(VENV)/python -m tests.networks.nets_table $(ARGS)

vectors: setup ## Write the test vectors again; git shows whether they changed
	$(VENV)/python tests/vectors/generate.py

reference: setup ## Write the generated pages of docs again, and the JavaScript client's endpoints and types, from the code
	$(VENV)/python -m tests.reference

screenshots: setup ## Take the pictures of the page in docs/pictures again (Chromium)
	$(VENV)/python -m tests.screenshots

vendor: setup ## Copy the page's modules of others, as package-lock.json beside them names these (npm and its registry)
	$(VENV)/python -m tests.support.vendored

lock: setup ## Resolve requirements.lock again (UPGRADE=1: to the newest versions)
	$(VENV)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --all-extras --group dev \
		--generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
		--no-emit-package ravel-client $(if $(UPGRADE),--upgrade) --output-file requirements.lock
	$(VENV)/uv pip compile --group pyproject.toml:fuzz --quiet --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
		$(if $(UPGRADE),--upgrade) --output-file tests/fuzz/requirements.lock

clean: ## Remove .venv, caches and what the demo made
	rm -rf .venv .demo dist .fuzz_cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log
	find $(FOLDERS) -name __pycache__ -type d -prune -exec rm -rf {} +
