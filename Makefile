# Two commands do the work: `make table3` and `make test`. Each first sees to .venv,
# the only place anything is installed in. All of these may be set on the command line.
PYTHON =
CONFIG = configs/table3.py:grammar
WORKDIR = runs/table3
ARGS =
JOBS = auto
TEST_PROCESSES = 2

# Shims of version managers exist for versions that do not run, so an interpreter
# counts only once it has printed its own version and place.
CANDIDATES = $(or $(PYTHON),.venv/bin/python python3.13 python3.12 python3.11 python3)
PROBE = import ensurepip, os, sys, venv; \
	(3, 11) <= sys.version_info < (3, 14) or sys.exit(1); \
	print(sys.version.split()[0], os.path.realpath(sys._base_executable))
PIP = PIP_USER=0 .venv/bin/python -m pip --disable-pip-version-check
CODE = src experiments configs tests

export PYTHONPATH := src$(if $(PYTHONPATH),:$(PYTHONPATH))

.DEFAULT_GOAL := help
.PHONY: help table3 test test-all parity lint clean venv

help:
	@echo 'make table3   train all rows of Table 3 on the embedded corpus, print the table'
	@echo 'make test     run the tests, in under 20 minutes'
	@echo 'make test-all run them with all variants of what takes long'
	@echo 'make parity   compare with PyTorch and CTranslate2, which it installs'
	@echo 'make lint     check format, style and types'
	@echo 'make clean    remove .venv and caches; runs/ is kept'
	@echo
	@echo 'Settings: PYTHON=python3.12  CONFIG=$(CONFIG)'
	@echo '          WORKDIR=$(WORKDIR)  ARGS="more flags"'
	@echo '          JOBS=1 to have runs one after the other, each on all devices'
	@echo '          TEST_PROCESSES=0 to have tests run one after the other'

# Large arrays in huge pages: a training step on a CPU takes up to a third less time.
table3: export GLIBC_TUNABLES = glibc.malloc.hugetlb=1
table3: export MALLOC_MMAP_THRESHOLD_ = 4294967296
table3: export MALLOC_TRIM_THRESHOLD_ = 8589934592
table3: export MALLOC_TOP_PAD_ = 268435456
table3: venv
	@.venv/bin/python -m experiments.sweep --config='$(CONFIG)' --workdir='$(WORKDIR)' \
	  --jobs=$(JOBS) $(ARGS)

test: venv
	@.venv/bin/python -m pytest --numprocesses=$(TEST_PROCESSES) $(ARGS)

test-all: venv
	@.venv/bin/python -m pytest --numprocesses=$(TEST_PROCESSES) -m 'not parity' $(ARGS)

parity: venv
	$(PIP) install --quiet -r requirements-parity.txt
	.venv/bin/python -m pytest -m parity tests/parity $(ARGS)

lint: venv
	.venv/bin/ruff format --check $(CODE)
	.venv/bin/ruff check $(CODE)
	.venv/bin/mypy

clean:
	rm -rf .venv .cache .pytest_cache .hypothesis .mypy_cache .ruff_cache
	rm -rf build src/*.egg-info
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# .venv/installed is written after the last package: interpreter and requirements of
# a finished installation. Where it agrees with the present ones there is nothing to
# do; where it differs the environment is made anew; where it is missing (interrupted,
# or made by hand) the installation is completed in place.
venv:
	@found=; for python in $(CANDIDATES); do \
	  found=$$("$$python" -c '$(PROBE)' 2>/dev/null) && break; found=; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'No usable Python: none of "$(CANDIDATES)" runs, is 3.11, 3.12 or 3.13' \
	    'and has the module venv. Install one (on Debian and Ubuntu with its' \
	    'python3-venv), or name it: make PYTHON=/path/to/python' >&2; \
	  exit 1; \
	fi; \
	wanted="$$found; requirements.txt $$(cksum < requirements.txt)"; \
	[ "$$wanted" != "$$(cat .venv/installed 2>/dev/null)" ] || exit 0; \
	present=; \
	if [ ! -e .venv/installed ] && .venv/bin/python -m pip -V >/dev/null 2>&1; then \
	  present=$$(.venv/bin/python -c '$(PROBE)' 2>/dev/null); \
	fi; \
	rm -f .venv/installed; \
	if [ "$$found" != "$$present" ]; then \
	  "$${found#* }" -m venv --clear .venv || exit 1; \
	fi; \
	echo "Installing requirements.txt into .venv (Python $${found%% *}; minutes) ..."; \
	if ! $(PIP) install --quiet -r requirements.txt; then \
	  echo 'The installation did not finish; the cause is printed above.' \
	    'The next make goes on from here.' >&2; \
	  exit 1; \
	fi; \
	printf '%s\n' "$$wanted" > .venv/installed.part; \
	mv .venv/installed.part .venv/installed
