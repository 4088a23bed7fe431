# Everything runs in .venv, which each target makes if it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test lint types bench acceptance clean

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP) ## install floorit and its tools into .venv

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch numpy
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: install ## record a training program with known faults and show what was found beside what is true
	$(BIN)/floorit demo

test: install lint types ## everything that CI checks
	$(BIN)/pytest -n 2 -m "not acceptance"

lint: install ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## types
	$(BIN)/mypy

bench: install ## what recording costs, beside torch.profiler
	$(BIN)/python benchmarks/overhead.py

acceptance: install ## what takes too long for every change: kill -9 rounds, overhead, other interpreters
	$(BIN)/pytest -m acceptance
	$(BIN)/python benchmarks/overhead.py

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist
