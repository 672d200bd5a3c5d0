# Two commands are all that is needed: make reproduce, make test.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: help reproduce test test-all check generate results clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

reproduce: .venv/base.stamp  ## rebuild the quick rows from scratch, compare them, print the boards
	$(BIN)/rowproof reproduce
	$(BIN)/rowproof leaderboard

test: .venv/dev.stamp check  ## formatting, lint, generated files, fast tests
	$(BIN)/python -m pytest -q -n auto -m "not slow"

test-all: .venv/dev.stamp check  ## the fast and the slow tests
	$(BIN)/python -m pytest -q -n auto

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint
	$(BIN)/rowproof generate --check

generate: .venv/base.stamp  ## rewrite JSON schemas and the generated part of README.md
	$(BIN)/rowproof generate

results: .venv/dev.stamp  ## bring all rows and boards up to date
	$(BIN)/snakemake --cores all

clean:  ## remove intermediate files; committed results stay
	rm -rf work logs .snakemake

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, found $$($(PYTHON) --version): make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/base.stamp: pyproject.toml requirements.lock | .venv/bin/python
	$(INSTALL) --editable '.[cocarry]'
	@touch $@

.venv/dev.stamp: .venv/base.stamp
	$(INSTALL) --editable '.[dev]'
	@touch $@
