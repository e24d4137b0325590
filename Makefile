# Everything runs in one virtual environment, made on first use.
# Override: make test VENV=/other/place PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= requirements/constraints.txt
# More arguments for the commands that take them, such as PYTEST_ARGS='-m "not slow"'.
DEMO_ARGS ?=
ABLATION_ARGS ?=
PYTEST_ARGS ?=

SET_UP = "$(PYTHON)" tools/set_up.py --venv "$(VENV)" --constraints "$(CONSTRAINTS)"
RUN = "$(VENV)/bin/python"

.PHONY: help demo test ablation test-mim lint setup-demo setup-test

help:
	@echo 'make demo   install, then train, evaluate and predict on handwritten digits'
	@echo 'make test   install, then lint and run all tests'
	@echo 'make ablation  install, then train the miniature ablations: table in work_dirs/ablation'
	@echo 'make test-mim  install, then try what the two mim clients do with this package'
	@echo 'make lint   check style and formatting only'
	@echo 'Variables:  PYTHON=$(PYTHON) VENV=$(VENV) CONSTRAINTS=$(CONSTRAINTS) DEMO_ARGS= PYTEST_ARGS='

demo: setup-demo
	$(RUN) tools/demo.py $(DEMO_ARGS)

ablation: setup-demo
	$(RUN) tools/ablation.py $(ABLATION_ARGS)

test-mim: setup-demo
	$(RUN) tools/misc/test_mim.py

test: lint
	$(RUN) -m pytest $(PYTEST_ARGS)

lint: setup-test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) tools/misc/write_ablations.py configs/ablations/table.json --check
	$(RUN) tools/misc/check_zoo.py

setup-demo:
	@$(SET_UP) --for demo

setup-test:
	@$(SET_UP) --for test
