# Every command of the project. `make` alone lists them; none needs a step before.
#
# Not a build system: cargo and maturin know what is up to date. The longer recipes are scripts in .ci/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
APP ?= examples/hello.py
PORT ?= 8000
# What is measured: `wheel`, or `wheel-pgo`.
WHEEL ?= wheel
# Three workers for two cores, since many tests wait; a module stays on one, since its tests share a server.
PYTEST := $(VENV)/bin/python -m pytest -n 3 --dist loadscope
# What meets asyncio, and so differs between Pythons; the rest of the tests meets sockets.
ASYNCIO_TESTS := $(wildcard tests/asgi tests/asyncio_fidelity tests/bridge tests/embedding tests/lifecycle)

# What compares with uvicorn itself, which only the environment of `make frameworks` has; elsewhere that is skipped.
BESIDE_UVICORN := tests/compat/test_names.py tests/compat/test_uvicorn_command.py tests/contrib tests/process/test_compat.py tests/test_docs.py tests/test_settings.py

# One interpreter for every cargo command, or pyo3 is rebuilt each time PATH changes.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python
# Paths here are below target/, whatever the caller's shell has set.
unexport CARGO_TARGET_DIR
# The parts of one command share target/ and both cores.
.NOTPARALLEL:

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.* ## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, install into .venv and serve examples/hello.py (APP=… PORT=…)
	@echo "Serving $(APP): look at http://127.0.0.1:$(PORT) (Ctrl+C stops)"
	@exec $(VENV)/bin/serve $(APP) --port $(PORT)

.PHONY: test
test: cargo-test build proxies ## build and run every test but the long ones on the default Python (ARGS=… for pytest)
	$(PYTEST) $(ARGS)

.PHONY: proxies
proxies:
	@.ci/proxies
	@.ci/uvicorn

.PHONY: pairwise
pairwise: ## the asyncio-facing tests on every other Python found, as CI does
	@.ci/each-python others $(ASYNCIO_TESTS)

.PHONY: chaos
chaos: build ## 200 faults by chance in two minutes, under 500 requests a second (CHAOS_SEED=… repeats a run)
	CHAOS_FAULTS=200 CHAOS_SECONDS=120 CHAOS_RATE=500 $(VENV)/bin/python -m pytest -s tests/workers/test_chaos.py $(ARGS)

.PHONY: matrix
matrix: cargo-test ## the same on every Python found
	@.ci/each-python all $(ARGS)

.PHONY: frameworks
frameworks: ## real frameworks answer as they do under uvicorn
	@read -r version python < <(.ci/pythons); .ci/environment .venv-frameworks "$$python" test frameworks
	@.ci/build .venv-frameworks
	.venv-frameworks/bin/python -m pytest -n 2 --dist loadscope tests/matrix tests/published $(BESIDE_UVICORN) $(ARGS)

.PHONY: applications
applications: build ## published applications, asked by their own clients under uvicorn and here (NAMES='gradio mcp')
	@.ci/applications $(NAMES)
	@$(VENV)/bin/python tests/applications/both.py $(NAMES)

.PHONY: cpython-tests
cpython-tests: ## CPython's own tests of asyncio, in requests and with our task, on every Python found
	@.ci/each-python all tests/cpython $(ARGS)

.PHONY: anyio-tests
anyio-tests: ## anyio's own tests, in requests and with our task, on every Python found
	@.ci/anyio
	@.ci/each-python all tests/anyio_suite $(ARGS)

.PHONY: soak
soak: build ## the long tests, such as 200 starts and stops under traffic
	BRIDGEHEAD_TEST_SOAK=1 $(VENV)/bin/python -m pytest -m soak --timeout 1800 $(ARGS)

.PHONY: coordination
coordination: build ## grelmicro under two workers, with Debian's PostgreSQL and Redis
	@bash .ci/databases
	BRIDGEHEAD_TEST_DATABASES=1 $(PYTEST) tests/coordination $(ARGS)

.PHONY: miri
miri: ## ASGI's rules and the guard of heads under Miri, on a nightly toolchain that has it (MODULES='messages scope')
	PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri cargo +nightly miri test \
		--locked -p bridgehead-asgi --tests -- $(or $(MODULES),messages scope transitions websocket)
	PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri cargo +nightly miri test \
		--locked -p bridgehead-heads --lib

.PHONY: loom
loom: ## the inbox, bell, standby, admission, wakes, loans, records, series and gates in every order that their threads may take
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release --manifest-path crates/bridgehead-python/tests/loom/Cargo.toml
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release --manifest-path crates/bridgehead-admission/tests/loom/Cargo.toml
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --release --manifest-path crates/bridgehead-metrics/tests/loom/Cargo.toml

.PHONY: differential
differential: build ## odd requests by the hundred thousand beside h11 and llhttp, and the corpus in every cut (SEED=… CASES=…)
	BRIDGEHEAD_TEST_DIFFERENTIAL=$(or $(CASES),200000) BRIDGEHEAD_TEST_SEED=$(or $(SEED),$(shell date +%s)) \
		$(PYTEST) tests/differential $(ARGS)

.PHONY: h2spec
h2spec: build ## h2spec's cases of HTTP/2 (needs go, the first time)
	@.ci/h2spec $(VENV)

.PHONY: autobahn
autobahn: build ## Autobahn's cases of WebSockets, in half an hour (CASES='1.* 12.1.*'; needs a Python 2.7)
	@.ci/autobahn $(VENV)

.PHONY: fuzz-smoke
fuzz-smoke: ## every fuzzer for a minute, from the seeds that are kept (SECONDS_EACH=… TARGETS='http1 pem')
	@.ci/fuzz $(or $(SECONDS_EACH),60) $(TARGETS)

.PHONY: asan
asan: environment ## the Rust tests, and the corpus of requests by the extension, with AddressSanitizer on a nightly toolchain (ARGS=… for pytest)
	@.ci/asan $(VENV) $(ARGS)

.PHONY: references
references: ## requests keep no reference, as Debian's debug build of CPython counts them (as root, the first time)
	@read -r version python < <(.ci/pythons); .ci/system "$$python" python3.11d=python3.11-dbg
	@.ci/environment .venv-debug "$$(command -v python3.11d)" test
	@.ci/build .venv-debug
	BRIDGEHEAD_TEST_LOOPS=asyncio,fused .venv-debug/bin/python -m pytest -s tests/bridge/test_references.py $(ARGS)

.PHONY: audit
audit: environment ## known faults of the Python packages that build and test this, where they can be looked up
	@.ci/audit $(VENV)

.PHONY: observability
observability: build ## every query and alert of examples/observability, judged by Debian's Prometheus; the page in headless Chromium, where that is
	@.ci/prometheus
	@mkdir -p target/page
	BRIDGEHEAD_TEST_BROWSER=1 BRIDGEHEAD_TEST_PICTURES=$(CURDIR)/target/page $(VENV)/bin/python -m pytest -rs --timeout 600 \
		tests/operations/test_queries.py tests/operations/test_alerts.py tests/operations/test_page.py $(ARGS)
	@ls target/page/*.png 2>/dev/null || echo "no pictures of the page: Chromium is not installed"

.PHONY: rolling
rolling: build ## two machines restarted behind HAProxy, nginx and Envoy, 500 requests a second, none fails (as root)
	@.ci/proxies
	@.ci/envoy
	BRIDGEHEAD_TEST_ROLLING=1 $(VENV)/bin/python -m pytest -s tests/deploy/test_rolling.py $(ARGS)

.PHONY: kubernetes
kubernetes: build ## the manifests by an apiserver's strict dry run, their probes by the kubelet's prober (needs go)
	@.ci/kubernetes
	$(VENV)/bin/python -m pytest -s tests/deploy/test_kubernetes.py $(ARGS)

.PHONY: faults
faults: build ## everything that is done to break the server, and what it costs whom
	$(VENV)/bin/python tests/faults/run.py $(ARGS)

.PHONY: check check-style check-types check-rust check-dependencies
check: check-style check-types check-rust check-dependencies ## the linters: format, types, stubs, clippy, rustdoc, dependencies, house rules

check-style: environment
	cargo fmt --check
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python .ci/house.py

check-types: build
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m mypy.stubtest bridgehead._native --allowlist .ci/stubtest.txt --ignore-unused-allowlist

check-rust: environment
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@# What `make loom` takes of these crates, file by file.
	for crate in python admission metrics; do \
		RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo check --quiet --tests --manifest-path crates/bridgehead-$$crate/tests/loom/Cargo.toml; \
	done
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --locked --quiet

check-dependencies: environment
	$(VENV)/bin/python .ci/arrow.py
	@.ci/deny

.PHONY: macos
macos: environment ## whether the Rust code compiles for macOS, from Linux too
	@.ci/macos $(VENV)

.PHONY: format
format: environment ## write the format that `make check` wants
	cargo fmt
	$(VENV)/bin/ruff check --fix --exit-zero .
	$(VENV)/bin/ruff format .

.PHONY: wheel
wheel: environment ## the optimised wheel (LTO) for the default Python, into dist/
	cargo fetch --locked --quiet
	RUSTFLAGS="$$(.ci/remap)" VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin build --release --locked --interpreter $(PYO3_PYTHON) --out dist
	@$(VENV)/bin/python -B .ci/sbom.py dist/*.whl

.PHONY: wheels
wheels: environment ## release wheels of manylinux for CPython 3.11 to 3.14 and 3.14t, and the sdist, each tried where it can be
	@.ci/wheels $(VENV)

.PHONY: wheel-pgo
wheel-pgo: environment ## the same, compiled by what its code does under load: a tenth less CPU for twice the build (needs llvm-profdata)
	@.ci/pgo $(VENV)

.PHONY: bench bench-quick bench-guard bench-environment
bench: bench-environment ## the yardstick: every peer, every workload, in 25 minutes (ARGS=… WHEEL=wheel-pgo), into target/bench.md
	.venv-peers/bin/python loadtests/compare.py --rounds 3 --output target/bench.md $(ARGS)

bench-quick: bench-environment ## two peers, five workloads, in two minutes
	.venv-peers/bin/python loadtests/compare.py --quick --rounds 3 --output target/bench-quick.md $(ARGS)

bench-guard: build ## no request takes more instructions than loadtests/instructions.json has (ARGS=--store writes it)
	@.ci/system $(VENV)/bin/python valgrind
	$(VENV)/bin/python loadtests/instructions.py $(ARGS)

# The release, and hyper alone.
bench-environment: $(WHEEL)
	env -u PYO3_PYTHON cargo build --profile bench -p bridgehead-load --example bare --locked
	@loadtests/environment

.PHONY: overload
overload: bench-environment ## up to four times too many requests: figures and a plot into docs/overload.md (ARGS='--seconds 5')
	cd loadtests && ../.venv-peers/bin/python overload.py --write $(ARGS)

.PHONY: load-soak drain reloads
load-soak: build ## ten minutes of load: memory, descriptors, tasks and p99 stay flat (ARGS='--hours 8')
	$(VENV)/bin/python loadtests/soak.py $(ARGS)

drain: build ## restarts under load lose nothing (ARGS='--restarts 20')
	$(VENV)/bin/python loadtests/drain.py $(ARGS)

reloads: build ## SIGHUP ten times under load: no request fails, and the worst one is told (ARGS='--workers 1')
	$(VENV)/bin/python loadtests/reloads.py --output target/reloads.md $(ARGS)

.PHONY: docs
docs: ## build the site of the documents into target/site
	@read -r version python < <(.ci/pythons); .ci/docs "$$python"

.PHONY: settings
settings: build ## write docs/settings.md from python/bridgehead/config.py
	@mkdir -p target
	$(VENV)/bin/python -m bridgehead.settings_page > target/settings.md
	mv target/settings.md docs/settings.md

.PHONY: lock
lock: ## take the newest versions of the Python tools into .ci/constraints.txt
	@.ci/lock

.PHONY: clean
clean: ## remove everything that these commands made
	rm -rf target dist .venv .venv-* .pytest_cache .mypy_cache .ruff_cache python/bridgehead/*.so
	find . -name __pycache__ -prune -exec rm -rf {} +

.PHONY: environment
environment:
	@read -r version python < <(.ci/pythons); .ci/environment $(VENV) "$$python" test check

.PHONY: build
build: environment
	@.ci/build $(VENV)

# Before the build of the extension, which starts from the dependencies that this one compiles.
.PHONY: cargo-test
cargo-test: environment
	@.ci/seed target
	LD_LIBRARY_PATH="$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}" \
		cargo test --workspace --locked
