# Two commands do all the set-up in a fresh checkout: `make demo` and `make test`.
# `make help` lists the rest.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2

ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PY     := $(BIN)/python
PIP    := $(PY) -m pip install -qq --constraint constraints.txt
STAMPS := $(VENV)/.stamps

# One thread per process: the tests and benchmarks run several processes themselves.
export OMP_NUM_THREADS ?= 1

DEMO := src/zerograd/demo/train.py

.DEFAULT_GOAL := help
.PHONY: help setup torch dev browser demo test check format lint types tests golden docs wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Set-up: three stages, so that the slow one comes last.

setup: $(STAMPS)/package ## the package alone, without torch (seconds)
torch: $(STAMPS)/torch ## PyTorch (minutes, the first time)
dev: $(STAMPS)/dev ## all that the tests need

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "zerograd needs Python 3.10 or later; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/package: pyproject.toml constraints.txt | $(STAMPS)/venv
	@echo "Installing zerograd into $(VENV) (no torch yet) ..."
	@$(PIP) --editable .
	@touch $@

$(STAMPS)/torch: constraints.txt | $(STAMPS)/package
	@echo "Installing PyTorch into $(VENV); the first time this takes some minutes ..."
	@$(PIP) --editable '.[torch]'
	@touch $@

$(STAMPS)/dev: pyproject.toml constraints.txt | $(STAMPS)/torch
	@echo "Installing what the tests need into $(VENV) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@

# The page tests drive a real browser. A build machine gets one; a user's machine is left alone,
# and there a missing browser is a skip that says so.
browser:
	@if [ "$$CI" = true ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	    && ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then \
	  echo "Installing chromium for the page tests ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	fi

# The two commands.

demo: $(STAMPS)/package ## see it work: the first finding comes before torch is installed
	@echo
	@echo "\$$ zerograd check $(DEMO)"
	@$(BIN)/zerograd check $(DEMO); status=$$?; test $$status -eq 1 \
	  || { echo "make demo: expected one finding and exit 1, got exit $$status"; exit 1; }
	@echo
	@$(MAKE) --no-print-directory torch
	@$(BIN)/zerograd demo
	@echo
	@echo "Your own code: $(BIN)/zerograd check PATH"

test: $(STAMPS)/dev browser lint types tests ## all tests, lint and types

# The parts of `make test`.

check: format test ## format, then everything that `make test` does

format: $(STAMPS)/dev ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: $(STAMPS)/dev ## ruff, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/dev ## mypy --strict
	$(BIN)/mypy

tests: $(STAMPS)/dev ## the tests alone
	$(PY) -m pytest -n $(JOBS) --dist loadgroup

golden: $(STAMPS)/dev ## rewrite tests/golden from what the code says now; review the diff
	$(PY) -m pytest tests -q -m golden --rewrite-golden -n 0
	@git --no-pager diff --stat -- tests/golden

docs: $(STAMPS)/dev ## build the documentation site into site/
	$(PY) -m mkdocs build --strict --quiet
	@echo "site/index.html"

wheel: $(STAMPS)/dev ## build the wheel into dist/
	@rm -rf dist
	$(PY) -m build --wheel --outdir dist .

clean: ## remove what was built, but keep the environment
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache tests/golden/actual

# Long evidence: each target regenerates one file in benchmarks/results. What is measured on other
# people's code needs that code: CORPUS names its folder (benchmarks/accuracy/corpus.py fills it).

CORPUS   ?= .scratch/corpus/dev
MIXED    ?= .scratch/mixed
RIVALS   ?= .scratch/rivals
PROGRAMS ?= 15000
# Checkouts of other people's programs, named owner+name, and a Python that has what they import.
OUTSIDE  ?= .scratch/outside
OUTSIDE_PYTHON ?= $(PY)
OUTSIDE_SITE ?=
# A Python that also has torch-audit and traincheck, to measure them beside `watch`.
RIVAL_PYTHON ?= $(PY)
RESULTS  := benchmarks/results

bench-accuracy: $(STAMPS)/dev ## findings on pinned public code: precision and recall
	$(PY) -m benchmarks.accuracy.measure --corpus $(CORPUS) --jobs $(JOBS) \
	  --results $(RESULTS)/accuracy_development.json
bench-originals: $(STAMPS)/dev ## findings on untouched public code
	$(PY) -m benchmarks.accuracy.originals --corpus $(CORPUS) --name development
bench-agreement: $(STAMPS)/dev ## 15,000 generated programs: the checker against the live witness
	$(PY) -m benchmarks.agreement --programs $(PROGRAMS) --jobs $(JOBS)
	$(PY) -m benchmarks.agreement.noticed --jobs $(JOBS)
bench-exhaustive: $(STAMPS)/dev ## 15,000 generated programs: the checker against brute force
	$(PY) -m benchmarks.accuracy.agreement --count $(PROGRAMS) --jobs $(JOBS) --results $(RESULTS)/exhaustive.json
bench-rewrites: $(STAMPS)/dev ## 20,000 programs written in another way: the checker must say the same
	$(PY) -m benchmarks.accuracy.rewrites
bench-check-speed: $(STAMPS)/dev ## how long `zerograd check` takes, beside ruff and rivals
	$(PY) -m benchmarks.check_speed --training $(CORPUS) --mixed $(MIXED) --rivals $(RIVALS) \
	  --results $(RESULTS)/check_speed.json
bench-rule-numbers: $(STAMPS)/dev ## what each fault does to training: the figures on the rule pages
	$(PY) -m benchmarks.rule_numbers
bench-startup: $(STAMPS)/dev ## how long `zerograd --help` takes
	$(PY) -m benchmarks.startup
bench-watch: $(STAMPS)/dev ## what `watch` and `run` cost a training step
	$(PY) -m benchmarks.watch_overhead --rivals $(RIVAL_PYTHON) --output $(RESULTS)/watch_overhead.json
bench-outside: $(STAMPS)/dev ## programs that others wrote, with and without `zerograd run` (OUTSIDE holds the checkouts)
	$(PY) -m benchmarks.outside.run --checkouts $(OUTSIDE) --work $(OUTSIDE)/work --python $(OUTSIDE_PYTHON) \
	  --site "$(OUTSIDE_SITE)"
bench-ways: $(STAMPS)/dev ## many ways to train, right and wrong, as far as their packages are installed
	$(OUTSIDE_PYTHON) -m benchmarks.outside.ways
bench-trainings: $(STAMPS)/dev ## trainings through other people's packages, right and wrong, as far as these are installed
	$(OUTSIDE_PYTHON) -m benchmarks.outside.trainings
bench-million: $(STAMPS)/dev ## memory and trace of the sanitizer over a million steps
	$(PY) -m benchmarks.million_steps --output $(RESULTS)/million_steps.json
bench-step: $(STAMPS)/dev ## what `Step` costs against the loop written by hand
	$(PY) -m benchmarks.step_overhead
bench-step-accuracy: $(STAMPS)/dev ## `Step` against one large batch, number by number
	$(PY) -m benchmarks.step_accuracy
bench-step-gpu: $(STAMPS)/dev ## `Step` on a GPU: no more waiting than the loop by hand
	$(PY) -m benchmarks.step_gpu
bench-arena: $(STAMPS)/dev ## GradArena on a GPU
	$(PY) -m benchmarks.arena_gpu
bench-gpt2-gpu: $(STAMPS)/dev ## `zerograd bench` of GPT-2 on a GPU
	$(PY) -m zerograd bench --model gpt2 --device cuda --format json > $(RESULTS)/bench_gpt2_gpu.json
bench-watch-gpu: $(STAMPS)/dev ## what `watch` costs a training step on a GPU
	$(PY) -m benchmarks.watch_gpu --output $(RESULTS)/watch_gpu.json
bench-report: $(STAMPS)/dev ## how long the page of a million steps takes to open
	$(PY) -m benchmarks.report_page
