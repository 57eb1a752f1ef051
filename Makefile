# Needs python3 (3.11 or newer) and make, nothing else. Set-up happens once, and again when pyproject.toml changes.

PYTHON ?= python3
PYTEST_ARGS ?=
# A file's tests stay together: they share what is slow to start. Four workers, also on two processors: half of the time a
# test waits, for a process, a socket or a clock. PYTEST_WORKERS=0 runs all in one process.
PYTEST_WORKERS ?= 4
PARALLEL = --numprocesses $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder
BENCH_ARGS ?=

PIP_INSTALL = python -m pip install --quiet --disable-pip-version-check --no-compile
# Without this, SAM reports home, and asks for a region that nothing here needs.
SAM = SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 PATH="$(CURDIR)/.venv-sam/bin:$$PATH" sam

# Bytecode is kept here whatever the shell says: tests start hundreds of processes, and without it each would compile
# whatever it imports, for half of the time that all of this takes.
check fuzz lint test test-all test-boto3 conformance clients browser policies: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.NOTPARALLEL: # two extras share one environment

.PHONY: help
help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 19

.PHONY: demo
demo: .venv/.demo ## a client holds a conversation of three rounds with a function; PAUSE=1: over three days; TASK=1: a task
	@.venv/bin/python -m mcp_functions_harness demo$(if $(PAUSE), --pause)$(if $(TASK), --task)$(if $(RUNTIME), --runtime)

.PHONY: serve
serve: .venv/.demo ## every function behind http://127.0.0.1:8000/mcp; PORT=8001; RUNTIME=1: as processes of the Lambda runtime
	@.venv/bin/python -m mcp_functions_harness serve$(if $(PORT), --port $(PORT))$(if $(RUNTIME), --runtime)

# What `make test` leaves to `make test-all`: the suites that take minutes, and those that need more than .venv.
# harness/test_adoption.py loads thirty servers in processes that import `mcp` and `fastmcp`: half a minute of CPU.
LONG = $(addprefix tests/,adopt/test_restarts.py benchmarks browser clients conformance docs/test_recipes.py docs/test_recipes_operations.py \
	harness/test_adoption.py harness/test_serve_command.py \
	policies project/test_build.py \
	project/test_distribution.py project/test_own_project.py project/test_pythons.py project/test_typing.py deployed sam_local simulation soak)
LATER = $(addprefix tests/,deployed sam_local) # each in one process: it starts what all of its tests share

.PHONY: test
test: .venv/.dev check ## linters, types, and every test that needs nothing but .venv
	.venv/bin/python -m pytest $(addprefix --ignore ,$(LONG)) $(PARALLEL) $(PYTEST_ARGS)

MINUTES = 10
# `make test` tries the same examples in every run. This tries others: each pass over the tests has the next seed.
.PHONY: fuzz
fuzz: .venv/.dev ## other examples for the tests with Hypothesis, for MINUTES=10; SEED=1 tries those of a run before
	@seed=$(or $(SEED),$$(date +%s)); end=$$(($$(date +%s) + $(MINUTES) * 60)); \
	while [ $$(date +%s) -lt $$end ]; do \
	  echo "make fuzz SEED=$$seed"; \
	  .venv/bin/python -m pytest -q -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $$seed \
	    $(addprefix --ignore ,$(LONG)) $(PARALLEL) $(PYTEST_ARGS) || \
	    { echo "make fuzz SEED=$$seed failed: pin the failing test case above its test, as an @example(...)"; exit 1; }; \
	  seed=$$((seed + 1)); \
	done

# These suites start processes, which have Lambda's ten seconds to initialize: no more workers than processors.
test-all: PYTEST_WORKERS = logical
.PHONY: test-all
test-all: .venv/.dev .venv-sam/.sam .venv-clients/.clients .venv-ministack/.ministack lint site test-boto3 ## everything that `make test` leaves out (needs Node.js, npm, Chromium)
	CLIENTS=all CONFORMANCE=all .venv/bin/python -m pytest $(filter-out $(LATER),$(LONG)) $(PARALLEL) $(PYTEST_ARGS)
	for each in $(LATER); do .venv/bin/python -m pytest $$each $(PYTEST_ARGS) || exit 1; done

# What calls AWS is tested once more with boto3 in the place of the toolkit's own client.
.PHONY: test-boto3
test-boto3: .venv/.dev ## the tests that call AWS, with MCP_AWS_CLIENT=boto3
	MCP_AWS_CLIENT=boto3 .venv/bin/python -m pytest tests/aws tests/store tests/seal/test_fleet.py \
		tests/test_front_door_failures.py tests/seal/test_kms_client.py tests/harness/runtime tests/harness/test_kms.py \
		tests/tasks/test_workers.py $(PARALLEL) $(PYTEST_ARGS)

.PHONY: own-project
own-project: .venv/.dev .venv-sam/.sam ## a project made from the wheel, outside the clone
	.venv/bin/python -m pytest tests/project/test_own_project.py $(PYTEST_ARGS)

.PHONY: check
check: .venv/.dev ## linter, formatter, types, import order
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo

# `checkov` knows what people forget. The template is linted twice, because each linter misses what only the other form shows.
.PHONY: lint
lint: .venv/.dev .venv-sam/.sam .venv-lint/.lint ## cfn-lint on template.yaml, as delivered and with oauth, and on what it becomes; checkov on the latter
	@mkdir -p .aws-sam
	cp template.yaml .aws-sam/ && cd .aws-sam && $(CURDIR)/.venv/bin/python -m mcp_functions_harness auth oauth
	for each in template .aws-sam/template; do \
	  AWS_DEFAULT_REGION=us-east-1 .venv-sam/bin/python scripts/translate.py $$each.yaml > .aws-sam/translated.json && \
	  .venv-sam/bin/cfn-lint $$each.yaml .aws-sam/translated.json && \
	  .venv-lint/bin/checkov --config-file .checkov.yaml --file .aws-sam/translated.json || exit 1; \
	done

# Strict: a dead link, a page that the contents lack, or a docstring that Sphinx cannot read ends it.
.PHONY: site
site: .venv-site/.site ## the pages and an API reference as a web site in build/site, with search
	@rm -rf build/site # a page that is gone would stay
	.venv-site/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env \
	  --conf-dir site --doctree-dir build/site-doctrees --builder html . build/site
	@echo "build/site/index.html"

.PHONY: conformance
conformance: .venv/.dev ## the official MCP suite, strictly, in both placements (needs Node.js and npm)
	CI=true CONFORMANCE=all .venv/bin/python -m pytest tests/conformance $(PYTEST_ARGS)

.PHONY: clients
clients: .venv/.dev .venv-clients/.clients ## the official clients, those of 2025 too, against every function (needs Node.js and npm)
	CI=true CLIENTS=all .venv/bin/python -m pytest tests/clients $(PYTEST_ARGS)

.PHONY: browser
browser: .venv/.dev ## headless Chromium goes through the sign-in, and holds conversations on the page of the harness (needs Chromium)
	CI=true .venv/bin/python -m pytest tests/browser $(PYTEST_ARGS)

.PHONY: simulate
simulate: .venv/.dev ## what KMS costs fleets of 1 to 1000 containers: docs/performance.md and its picture
	@.venv/bin/python -m tests.simulation

.PHONY: bench
bench: .venv/.dev ## ours, peers and floors, cold and warm: docs/performance.md; QUICK=1, CASE=cold-add, STRICT=1
	@.venv/bin/python -m tests.benchmarks$(if $(QUICK), --quick)$(if $(CASE), --case $(CASE))$(if $(STRICT), --strict) $(BENCH_ARGS)

.PHONY: bench-adopt
bench-adopt: .venv/.dev ## what adoption adds to the cold start of servers
	@.venv/bin/python -m tests.benchmarks.adoption

.PHONY: soak
soak: .venv/.dev ## 10 000 conversations through kills, outages and wrong clocks; CONVERSATIONS=500: fewer; SEED=, PAGE=1; TASKS=300: tasks
	@$(if $(TASKS),.venv/bin/python -m tests.soak.tasks --tasks $(TASKS)$(if $(SEED), --seed $(SEED)),$(SOAK))

SOAK = .venv/bin/python -m tests.soak$(if $(CONVERSATIONS), --conversations $(CONVERSATIONS))$(if $(SEED), --seed $(SEED))$(if $(WORKERS), --workers $(WORKERS))$(if $(PAGE), --page)

.PHONY: profile
profile: .venv/.dev ## where a cold start or a warm call spends its time: CASE=cold-add, cold-ask-door, warm-call...
	@.venv/bin/python -m tests.benchmarks.profiles $(or $(CASE),--help) $(BENCH_ARGS)

.PHONY: catalog
catalog: .venv/.demo ## write functions/mcp/catalog.json, after a function changed
	@.venv/bin/python -m mcp_functions_harness catalog
	@.venv/bin/python -m mcp_functions_harness catalog --functions tests/conformance/functions

.PHONY: pins
pins: .venv/.dev ## raise every pin to the newest releases that install together, and say what changed or is held (needs npm)
	@.venv/bin/python scripts/pins.py

.PHONY: build
build: .venv-sam/.sam ## the zips and layers that `sam deploy` sends
	$(SAM) build

.PHONY: policies
policies: .venv/.dev ## the roles of the translated template before an IAM simulator (needs Node.js)
	CI=true .venv/bin/python -m pytest tests/policies $(PYTEST_ARGS)

DEPLOYED = .venv/.dev .venv-sam/.sam .venv-clients/.clients $(if $(filter aws,$(DEPLOYED_TO)),,.venv-ministack/.ministack)

.PHONY: deployed
deployed: $(DEPLOYED) ## the template and a project of init, deployed into MiniStack (needs Python 3.13); DEPLOYED_TO=aws: into your account
	CI=true .venv/bin/python -m pytest tests/deployed $(PYTEST_ARGS)

.PHONY: deployed-mutants
deployed-mutants: $(DEPLOYED) ## changes of a deployed stack, each of which a conversation must notice: before a release
	MUTANTS=1 CI=true .venv/bin/python -m pytest tests/deployed/test_mutants.py $(PYTEST_ARGS)

.PHONY: sam-local
sam-local: .venv/.dev .venv-sam/.sam ## conversations in containers, under the real SAM CLI (Docker, or root on Debian)
	.venv/bin/python -m pytest tests/sam_local $(PYTEST_ARGS)

.PHONY: validate
validate: .venv-sam/.sam ## lint template.yaml
	$(SAM) validate --lint

.PHONY: clean
clean: ## remove whatever make made
	rm -rf .venv .venv-clients .venv-lint .venv-ministack .venv-sam .venv-site .aws-sam build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf dist tests/conformance/node_modules tests/policies/cdk/node_modules
	find functions layers tests -type d -name __pycache__ -prune -exec rm -rf {} +

OWN = $(wildcard functions/*/requirements.txt) # of one function, which SAM builds into its zip

.venv/.demo: pyproject.toml $(OWN)
	@$(call venv,.venv)
	.venv/bin/$(PIP_INSTALL) --editable '.[demo]' $(OWN:%=--requirement %)
	@touch $@

.venv/.dev: pyproject.toml $(OWN)
	@$(call venv,.venv)
	.venv/bin/$(PIP_INSTALL) --editable '.[dev]' $(OWN:%=--requirement %)
	.venv/bin/$(PIP_INSTALL) --no-deps $$($(PYTHON) -c "$(EXTRA)" translator)
	@PYTHONDONTWRITEBYTECODE= .venv/bin/python -c 'import awslambdaric.bootstrap' # functions' processes write none themselves
	@touch .venv/.demo $@

# SAM pins dozens of packages, so it has an environment to itself: the packages of the extra, without ours.
.venv-sam/.sam: pyproject.toml
	@$(call venv,.venv-sam)
	.venv-sam/bin/$(PIP_INSTALL) $$($(PYTHON) -c "$(EXTRA)" sam)
	@touch $@

# MiniStack is an AWS that others wrote. Its interpreter runs the functions too, so it is the Python of the layers.
.venv-ministack/.ministack: pyproject.toml
	@$(PYTHON_OF_LAYERS) -c pass 2>/dev/null || \
	  { echo "make deployed needs Python 3.13, as the layers: uv python install 3.13, or pyenv install 3.13" >&2; exit 2; }
	$(PYTHON_OF_LAYERS) -m venv .venv-ministack
	.venv-ministack/bin/$(PIP_INSTALL) $$($(PYTHON) -c "$(EXTRA)" emulator)
	@touch $@

# As layers/Makefile finds it; pyenv may have no shim for it.
PYTHON_OF_LAYERS = $(or $(shell for each in python3.13 $$(uv python find 3.13 2>/dev/null) \
	$$(ls -d $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.13*/bin/python3.13 2>/dev/null); do \
	$$each -c pass 2>/dev/null && echo $$each && break; done),python3.13)

# So does checkov, other ones.
.venv-lint/.lint: pyproject.toml
	@$(call venv,.venv-lint)
	.venv-lint/bin/$(PIP_INSTALL) $$($(PYTHON) -c "$(EXTRA)" lint)
	@touch $@

.venv-site/.site: pyproject.toml
	@$(call venv,.venv-site)
	.venv-site/bin/$(PIP_INSTALL) --editable '.[site]'
	@touch $@

# And so does the official Python client of 2025: it goes by the name of the one in .venv.
.venv-clients/.clients: tests/clients/python_1.txt
	@$(call venv,.venv-clients)
	.venv-clients/bin/$(PIP_INSTALL) --no-deps --requirement $<
	@touch $@

EXTRA = import sys, tomllib; \
	print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies'][sys.argv[1]])

define venv
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "mcp-functions needs python3.11 or newer: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }; \
$(PYTHON) -m venv $(1) || { echo "python3 cannot make environments: apt-get install python3-venv" >&2; exit 2; }
endef
