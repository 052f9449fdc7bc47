# The whole list of things one does here. CI runs `make check` and `make test`, as they stand.

CARGO ?= cargo
# Crates that must stay pure: no clock, files, network, threads, hash order (their clippy.toml says it in full).
PURE := disk sched nbd probe plot

.PHONY: demo test web web-target web-tests web-packages web-run soak planted fuzz drives python python-packages \
    python-tests tools check purity width package deny dist check-dist bench reproduce

demo: ## Build, and read a whole busy disk as today's tools do it and for free
	$(CARGO) run --quiet --profile demo --locked -p headtime --no-default-features -- demo

test: tools ## Run every test
	@skipped=$$(mktemp) && trap 'rm -f "$$skipped"' EXIT && \
	HEADTIME_SKIPPED=$$skipped $(CARGO) test --workspace --locked --quiet && \
	if [ ! -d "$${HEADTIME_DATA:-../shared/data}/disksim/ref" ]; then \
	    for name in disksim_drives disksim_load disksim_maps disksim_responses validation; do \
	        echo "skipped: $$name: no measured traces and DiskSim vectors here (HEADTIME_DATA is the directory above disksim/)"; \
	    done >>"$$skipped"; \
	fi && \
	if [ ! -d "$${HEADTIME_DATA:-../shared/data}/startup" ]; then \
	    echo "skipped: startup_recorded: no recorded starts here (HEADTIME_DATA is the directory above startup/)" >>"$$skipped"; \
	fi && \
	if $(MAKE) --no-print-directory python-packages; then \
	    $(MAKE) --no-print-directory python-tests; \
	else \
	    echo "skipped: the Python package's tests: no packages from PyPI (above)" >>"$$skipped"; \
	fi && \
	if [ -s "$$skipped" ]; then \
	    echo "make test: every test that ran passed; these did not run:"; sort -u "$$skipped"; \
	else \
	    echo "make test: every test passed, none was skipped"; \
	fi

PYTHON ?= python3
VENV := $(CURDIR)/target/python
python: python-packages python-tests ## Build the Python package, install it and what its tests need (PyPI) into target/python, and run its tests

python-packages:
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "installs python/requirements.txt into target/python"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements.txt

python-tests:
	@$(CARGO) build --locked --quiet -p headtime
	@cd python && VIRTUAL_ENV=$(VENV) $(VENV)/bin/maturin develop --quiet --locked
	@cd python && $(VENV)/bin/mypy && \
	    HEADTIME=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/headtime $(VENV)/bin/python -m pytest -q

# Where Cargo builds; the page is put together beside that.
BUILT := $${CARGO_TARGET_DIR:-$(CURDIR)/target}
WASM := wasm32-wasip1
web: web-target ## Build the web page into target/page; open index.html there (docs/page.md)
	@$(CARGO) build --locked --quiet --profile web --target $(WASM) -p headtime-web
	@$(PYTHON) -B tools/web.py $(BUILT)/$(WASM)/web/headtime-web.wasm $(BUILT)/page

web-target:
	@test -d "$$(rustc --print target-libdir --target $(WASM))" || rustup target add $(WASM)

WEB_VENV := $(CURDIR)/target/web-python
web-tests: web web-packages web-run ## Test the web page and the live view in headless Chromium (packages: PyPI's)

web-packages:
	@test -x $(WEB_VENV)/bin/python || $(PYTHON) -m venv $(WEB_VENV)
	@echo "installs web/tests/requirements.txt into target/web-python"
	@$(WEB_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r web/tests/requirements.txt

web-run:
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then \
	    $(CARGO) build --locked --quiet -p headtime && \
	    $(WEB_VENV)/bin/python -B -m pytest -q -p no:cacheprovider web/tests && \
	    HEADTIME=$(BUILT)/debug/headtime $(WEB_VENV)/bin/python -B crates/cli/tests/browser/live_view.py; \
	else \
	    echo "skipped: the web page's tests: no chromium, chromedriver (Debian: chromium, chromium-driver)"; \
	fi

MINUTES ?= 60
soak: ## Simulate whole servers for MINUTES; a failure prints its seed, and HEADTIME_SEED=N runs it again
	HEADTIME_SOAK_MINUTES=$(MINUTES) $(CARGO) test --release --locked --quiet -p headtime-serve --test whole_server -- \
	    --nocapture whatever_goes_wrong

planted: ## Plant faults in copies of the server; the simulation finds each within a minute
	@python3 tools/planted.py

SECONDS ?= 60
fuzz: ## Feed mutated inputs to each reader of files and messages, for SECONDS each
	HEADTIME_FUZZ_SECONDS=$(SECONDS) $(CARGO) test --release --locked --quiet -p headtime --test it -- \
	    --nocapture changed_inputs

N ?= 300
SEED ?= 1
drives: ## Characterise N drives drawn at random from SEED in virtual time; which are right, rejected, wrong, by class
	$(CARGO) run --quiet --release --locked -p headtime-probe --example drives -- $(N) $(SEED)

# Programs that tests run, each with its Debian package. Without them the tests are skipped, and said to be.
TOOLS := nbdkit:nbdkit nbdcopy:libnbd-bin qemu-io:qemu-utils fio:fio mkfs.ext4:e2fsprogs fusermount3:fuse3

tools:
	@PATH="$$PATH:/usr/sbin:/sbin"; missing=; \
	for tool in $(TOOLS); do \
	    command -v "$${tool%%:*}" >/dev/null || missing="$$missing $${tool##*:}"; \
	done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "make test: installs what tests run:$$missing"; \
	    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $$missing; } \
	        >/dev/null 2>&1 || echo "make test: that failed; tests that need it are skipped"; \
	else \
	    echo "make test: tests that run these are skipped:$$missing (Debian packages; root's make test installs them)"; \
	fi

SCRIPTS := bench/*.py bench/peers/*.py tools/licences.py tools/web.py packaging/*.py web/tests/*.py crates/cli/tests/browser/*.py

check: purity width ## Formatting, lints, purity, widths, documentation, packages, licences
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(CARGO) check -p headtime-disk --no-default-features --locked --quiet
	$(CARGO) check -p headtime-disk --no-default-features --features toml --locked --quiet
	$(CARGO) check -p headtime-disk --no-default-features --features disksim --locked --quiet
	$(CARGO) check -p headtime --no-default-features --locked --quiet
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	@$(MAKE) --no-print-directory package
	@$(MAKE) --no-print-directory deny
	@python3 tools/planted.py --check
	@python3 tools/cycles.py
	@python3 -B -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' $(SCRIPTS)
	@python3 -B -m doctest $$(grep -l '>>> ' $(SCRIPTS))
	@echo "make check: formatting, lints, purity, widths, documentation, packages, licences, planted faults," \
	    "imports and scripts are in order"

# The second net under clippy's lists: it also catches what a list forgot to name. Comment lines may say the words. And one
# file alone may say `unsafe`, tests included: the one that hands buffers to the kernel.
purity:
	@found=$$(grep -rnE 'std::(fs|net|thread|process|env|os)\b|\b(Instant|SystemTime|HashMap|HashSet|RandomState)\b' \
	    $(PURE:%=crates/%/src) | grep -vE '^[^:]+:[0-9]+: *//' || true); \
	if [ -n "$$found" ]; then echo "not pure:"; echo "$$found"; exit 1; fi
	@found=$$(grep -rsnw --include='*.rs' unsafe crates fuzz python | grep -v '^crates/serve/src/ring\.rs:' | \
	    sed 's|//.*||' | grep -w unsafe || true); \
	if [ -n "$$found" ]; then echo "unsafe elsewhere than in crates/serve/src/ring.rs:"; echo "$$found"; exit 1; fi

# Comments have at most 100 columns, tables and code in them excepted, and code 120: rustfmt wraps neither comments nor
# strings.
width:
	@git ls-files '*.rs' | python3 tools/width.py

# The crates that others may use build from what would be published of them, without a warning. Cargo unpacks a crate
# that another one needs into its cache, and notices neither there nor in a target directory that it has changed since.
package:
	@rm -rf $${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/headtime-* $${CARGO_TARGET_DIR:-target}/packages
	@said=$$($(CARGO) package --target-dir $${CARGO_TARGET_DIR:-target}/packages --locked --allow-dirty -p headtime-disk -p headtime-sched -p headtime-nbd 2>&1) || \
	    { echo "$$said"; exit 1; }; \
	if echo "$$said" | grep -A5 '^warning'; then exit 1; fi

# Licences, versions and sources of dependencies. cargo deny takes minutes to compile, and a check has no need of a
# network: where it is not installed, a script enforces the same rules (packaging/README.md).
deny:
	@if command -v cargo-deny >/dev/null; then cargo-deny --log-level error --locked check licenses bans sources; \
	else python3 -B tools/licences.py; fi

dist: ## Build the static program, its archive and Debian package, bill of materials and checksums in target/dist
	@packaging/dist.sh

check-dist: ## Check what `make dist` made: in an empty root and in a clean Debian, as root
	@packaging/check.sh

bench: ## Measure speed
	$(CARGO) bench --workspace --locked

reproduce: ## Run the experiments; out/index.html puts the papers' figures and ours side by side
	$(CARGO) run --quiet --release --locked -p headtime -- reproduce -o out
