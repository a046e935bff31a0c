# Everything sets itself up: `make demo` and `make test` work on a fresh machine with Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo services test adversary check lowest format lint types contracts openapi typescript bench bench-wire bench-http bench-ledger bench-lists bench-dead-letters bench-configuration bench-scale bench-fairness bench-inbox bench-inbox-bounds bench-outbox outbox-kills hostile fuzz fuzz-verify kill9 powerloss sim campaign mutants faults upgrade clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "surehook needs Python 3.11 or newer, this is %d.%d" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[server]' --group dev
	@touch $(READY)

demo: $(READY) ## a server, an application with an inbox, five other receivers, a kill -9 of both in the middle
	$(BIN)/surehook demo

services: ## PostgreSQL, RabbitMQ, Redis, PgBouncer, MariaDB, Node.js for the tests: installed when missing (root), never started
	@PYTHON=$(PYTHON) .ci/services

# Each worker reads all tests, and each server of a test the package: whatever the machine's custom, compile them once.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait for servers and clocks about as long as they compute: three keep two cores busy.
WORKERS ?= 3
test: $(READY) ## all tests; SERVICES=required refuses to leave any out
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not adversary'

# Milliseconds are judged one attack after another. Where none are, attacks run beside each other: they wait more than they
# compute, and each has its server, its ledger and its memory to itself. Those that compute (`computing`) take turns, and those
# that grew a server by a fifth less beside others (`alone`) have the machine to themselves.
TIMED ?= 1
ATTACKS ?= 4
BESIDE = -n $(ATTACKS) --dist load --maxschedchunk 1
adversary: $(READY) ## attacks on a running server, one after another: its memory, and what a customer beside them notices; TIMED=0 judges no milliseconds, ATTACKS at a time
ifeq ($(TIMED),0)
	TIMED=0 $(BIN)/python -m pytest tests/adversary -m 'adversary and alone'
	TIMED=0 $(BIN)/python -m pytest tests/adversary -m 'adversary and not alone' $(BESIDE)
else
	TIMED=$(TIMED) $(BIN)/python -m pytest tests/adversary -m adversary
endif

# Only a slow module needs it, and its import is a fifth of reading all tests.
UNASKED := -p no:schemathesis --ignore tests/api/test_fuzz.py
check: $(READY) format lint types contracts ## before each commit: format, lint, types, fast tests
	BUDGET=short $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow' $(UNASKED)

# Tools that go with any version of what is tested; deprecations told by other libraries are theirs.
LOW := .venv-lowest
TOOLS := pytest pytest-asyncio pytest-xdist hypothesis httpx aiosqlite apsw asyncmy 'psycopg[binary]' pymysql flask greenlet standardwebhooks svix opentelemetry-sdk pyyaml
lowest: $(READY) ## fast tests, and those of the ledgers, on the lowest versions that pyproject.toml names
	rm -rf $(LOW)
	$(PYTHON) -m venv $(LOW)
	$(BIN)/python -m tests.lowest > $(LOW)/lowest.txt
	$(LOW)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOW)/lowest.txt --editable '.[server,inbox,django,metrics,tracing,postgres,rabbitmq,redis]' $(TOOLS)
	$(LOW)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow' -W ignore::DeprecationWarning --ignore tests/api/test_fuzz.py --ignore tests/inbox/test_plugin.py
	$(LOW)/bin/python -m pytest -n $(WORKERS) --dist worksteal -W ignore::DeprecationWarning tests/ledgers

format: $(READY)
	$(BIN)/ruff format src lab tests

lint: $(READY)
	$(BIN)/ruff format --check src lab tests
	$(BIN)/ruff check src lab tests

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

openapi: $(READY) ## docs/openapi.json anew, after a change of the API
	$(BIN)/python -m lab openapi

typescript: $(READY) ## the TypeScript client: generated from docs/openapi.json, compiled, and an event delivered by it
	$(BIN)/python -m lab typescript

bench: $(READY) ## throughput, latency, isolation, lateness …: JSON and a table (a quarter of an hour)
	$(BIN)/python -m lab bench all

bench-wire: $(READY) ## CPU per POST of the wire client, beside others where they are installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check aiohttp pyreqwest
	$(BIN)/python -m lab.bench.wire
	$(BIN)/python -m lab.bench.wire_tls

bench-http: $(READY) ## CPU per request of the HTTP server, beside others (two minutes)
	$(BIN)/python -m lab.bench.http_server

bench-ledger: $(READY) ## CPU per row of the ledger's batches
	$(BIN)/python -m lab.bench.ledger

ROWS ?= 1000000
bench-lists: $(READY) ## what every list costs over ROWS finished deliveries; LEDGER=pg for PostgreSQL (10 million: 4 or 7 GB, twenty minutes)
	$(BIN)/python -m lab.bench.lists --rows $(ROWS) --ledger $(LEDGER) $(if $(RECORD),--record $(RECORD))

MINUTES ?= 60
bench-dead-letters: $(READY) ## what ROWS dead letters cost a minute by lying there; LEDGER=pg for PostgreSQL (five minutes)
	$(BIN)/python -m lab.bench.dead_letters --rows $(ROWS) --ledger $(LEDGER) --minutes $(MINUTES) $(if $(RECORD),--record $(RECORD))

LEDGER ?= sqlite
bench-configuration: $(READY) ## accepts beside fifty changes a second with 100,000 endpoints; LEDGER=pg for two nodes on PostgreSQL
	$(BIN)/python -m lab.bench.configuration --ledger $(LEDGER) $(if $(RECORD),--record $(RECORD))

PART ?=
SECONDS ?= 8
bench-scale: $(READY) ## what a delivery costs on PostgreSQL, in several processes, with RabbitMQ, with a past (an hour); PART=split,parked …
	$(BIN)/python -m lab.bench.scale --seconds $(SECONDS) --part '$(PART)' $(if $(RECORD),--record $(RECORD))

bench-fairness: $(READY) ## what a tenant notices of what another is owed: 64 MiB, a crowd of endpoints, 50,000 and 1,000,000 due rows; PART=owed,deep … LEDGER=pg
	$(BIN)/python -m lab.bench.fairness --seconds $(SECONDS) $(if $(PART),--part '$(PART)') $(if $(LEDGER),--ledger '$(LEDGER)')

bench-outbox: $(READY) ## CPU that `put` adds, transactions a second beside a bare insert, commit to arrival, events a second of the relay (two minutes)
	$(BIN)/python -m lab.bench.outbox

outbox-kills: $(READY) ## kill -9 of an application, its relay and the server on each database
	$(BIN)/python -m lab.bench.outbox_kills --kills $(KILLS)

bench-inbox: $(READY) ## durable accepts of the inbox beside a handler that commits each request by itself, and processing (three minutes)
	$(BIN)/python -m lab.bench.inbox $(if $(RECORD),--record $(RECORD))

bench-inbox-bounds: $(READY) ## what one handler of an inbox can do to others: hung, frozen and slow ones, each beside its bound (five minutes)
	$(BIN)/python -m lab.bench.inbox_bounds $(if $(RECORD),--record $(RECORD))

hostile: $(READY) ## hostile receivers: worst time over the deadline, worst bytes held
	$(BIN)/python -m lab hostile

INPUTS ?= 1000000
fuzz: $(READY) ## noise against the readers of answers and URLs
	$(BIN)/python -m lab fuzz --inputs $(INPUTS)

fuzz-verify: $(READY) ## near misses of every provider's messages against surehook.verify; INPUTS=10000000 is a campaign; RECORD=file
	$(BIN)/python -m lab fuzz-verify --inputs $(INPUTS) $(if $(RECORD),--record $(RECORD))

KILLS ?= 100
kill9: $(READY) ## kill -9 under load, start again, and again: lost and duplicated
	$(BIN)/python -m lab bench kill9 --kills $(KILLS) --json

POINTS ?= 5000
powerloss: $(READY) ## power losses at any I/O call of the SQLite ledger, with negative controls
	$(BIN)/python -m lab powerloss --points $(POINTS)

SEEDS ?= 500
WORLDS ?= 200
sim: $(READY) ## simulated worlds: SEEDS on each ledger, of three nodes, with a broker, and WORLDS with an inbox that crashes as well
	$(BIN)/python -m lab sim --seeds $(SEEDS) --ledger memory
	$(BIN)/python -m lab sim --seeds $(SEEDS) --ledger sqlite
	$(BIN)/python -m lab sim --seeds $(SEEDS) --nodes 3
	$(BIN)/python -m lab sim --seeds $(SEEDS) --nodes 3 --broker
	$(BIN)/python -m lab sim --seeds $(WORLDS) --inbox

CAMPAIGN ?= 5000
campaign: $(READY) ## CAMPAIGN worlds in which sender and inbox crash, kept in lab/records/inbox-campaign.json (half an hour)
	$(BIN)/python -m lab sim --inbox --seed 100000 --seeds $(CAMPAIGN) --record lab/records/inbox-campaign.json

mutants: $(READY) ## planted bugs: each must be found within 50 seeds; writes down which one found it; ONLY='names'
	$(BIN)/python -m lab mutants $(ONLY)

RUNS ?= 1
faults: $(READY) ## faults on real processes and servers; RUNS=20 is a campaign, ONLY=fleet or names, RECORD=file
	$(BIN)/python -m lab faults --runs $(RUNS) --only '$(ONLY)' $(if $(SHORT),--short) $(if $(RECORD),--record $(RECORD))

EVENTS ?= 1000000
upgrade: $(READY) ## an upgrade from the version of OLD=checkout under load, on both ledgers with EVENTS events; ONLY=sqlite or pg
	$(BIN)/python -m lab upgrade --old '$(OLD)' --events $(EVENTS) $(if $(ONLY),--ledger '$(ONLY)')

clean:
	rm -rf $(VENV) $(LOW) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
