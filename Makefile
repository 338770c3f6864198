# make site     build the site from the recordings in traces/ (no torch needed)
# make serve    serve it on this machine
# make traces   record again (installs torch)
# make verify   recompute every recorded number
# make test     everything tests need, the browser included, then the tests
# make lint     check the style and the types of the code
# make bench    measure against the limits in bench/
# make pictures make the READMEs' pictures again
# make lock     write .ci/lock.txt, the exact packages of make test; after make clean, the newest
# make clean    remove what make made, the recordings apart
#
# With another folder, port or interpreter:
#   TRACES=mine         the folder of recordings (site, traces, verify)
#   SITE=my-site        the folder of the site (site, serve, clean)
#   PORT=8080           where to serve
#   PYTHON=python3.12   what .venv/ is made with

PYTHON ?= python3
PORT ?= 8000
TRACES ?= traces
SITE ?= site
VENV := .venv
BIN := $(VENV)/bin
# Installs what pyproject.toml lists, with these extras; the checkout itself is run in place, not installed.
install = $(BIN)/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
  print(*p['dependencies'], *[r for e in '$(1)'.split() for r in p['optional-dependencies'][e]], sep='\n')" \
  > $(VENV)/requirements.txt && \
  $(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/requirements.txt

.PHONY: help site serve traces verify test lint bench pictures lock clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Two Routes needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "making $(VENV)/"
	@$(PYTHON) -m venv $(VENV)

# One stamp for each set of packages; changed requirements install again.
$(VENV)/site.ready: pyproject.toml | $(BIN)/python
	@echo "installing what the site needs"
	@$(call install,)
	@touch $@

$(VENV)/record.ready: pyproject.toml | $(BIN)/python
	@echo "installing what recording needs (torch among it)"
	@$(call install,record)
	@touch $@

$(VENV)/test.ready: pyproject.toml tests/browser.py | $(BIN)/python
	@echo "installing what tests need (torch and a browser among it)"
	@$(call install,record pretrained test)
	@$(BIN)/python tests/browser.py
	@touch $@

site: $(VENV)/site.ready
	@$(BIN)/python -m site_builder build --traces "$(TRACES)" --output "$(SITE)"

# A site that is named is served as it is: it may be of other recordings than TRACES.
serve: $(if $(filter file,$(origin SITE)),site,$(VENV)/site.ready)
	@$(BIN)/python -m site_builder serve --site "$(SITE)" --port $(PORT)

traces: $(VENV)/record.ready
	@$(BIN)/python -m tracer record --output "$(TRACES)"

verify: $(VENV)/site.ready
	@$(BIN)/python -m tracer verify "$(TRACES)"

test: $(VENV)/test.ready
	@$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/test.ready
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m mypy
	@$(BIN)/deno lint --quiet --config static/deno.json static/boot.js static/js
	@$(BIN)/deno check --quiet --config static/deno.json static/types.d.ts static/boot.js static/js/*.js $(wildcard static/js/*/*.js)

bench: $(VENV)/test.ready
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# With its TRACES and SITE as given; the pictures are of the site as it is built here.
pictures: $(VENV)/test.ready site
	@$(BIN)/python tests/pictures.py --site "$(SITE)"

lock: $(VENV)/test.ready
	@$(BIN)/python .ci/lock.py > .ci/lock.txt.tmp && mv .ci/lock.txt.tmp .ci/lock.txt

clean:
	@test ! -x $(BIN)/python || $(BIN)/python -m site_builder remove --site "$(SITE)"
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
