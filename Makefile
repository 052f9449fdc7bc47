# The whole list of things one does here. CI runs `make check` and `make test`, as they stand.

CARGO ?= cargo
# Crates that must stay pure: no clock, files, network, threads, hash order (their clippy.toml says it in full).
PURE := disk sched nbd

.PHONY: demo test check purity bench reproduce

demo: ## Build, and read a whole busy disk as today's tools do it and for free
	$(CARGO) run --quiet --release --locked -p headtime -- demo

test: ## Run every test
	@echo "make test: nothing is installed; Rust and Cargo are all it needs"
	$(CARGO) test --workspace --locked --quiet
	@if [ -d "$${HEADTIME_DATA:-../shared/data}/disksim/ref" ]; then \
	    echo "make test: every test passed, none was skipped"; \
	else \
	    echo "make test: every test passed; skipped, because the measured traces and DiskSim's vectors are not here"; \
	    echo "           (HEADTIME_DATA names the directory that holds disksim/): disksim_load, disksim_maps,"; \
	    echo "           disksim_responses, validation"; \
	fi

check: purity ## Formatting, lints, purity
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	@echo "make check: formatting, lints and purity are in order"

# The second net under clippy's lists: it also catches what a list forgot to name. Comment lines may say the words.
purity:
	@found=$$(grep -rnE 'std::(fs|net|thread|process|env|os)\b|\b(Instant|SystemTime|HashMap|HashSet|RandomState)\b' \
	    $(PURE:%=crates/%/src) | grep -vE '^[^:]+:[0-9]+: *//' || true); \
	if [ -n "$$found" ]; then echo "not pure:"; echo "$$found"; exit 1; fi

bench: ## Measure speed
	$(CARGO) bench --workspace --locked

reproduce: ## Run the experiments; out/index.html puts the papers' figures and ours side by side
	$(CARGO) run --quiet --release --locked -p headtime -- reproduce -o out
