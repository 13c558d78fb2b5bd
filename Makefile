# Everything happens in .venv; nothing is needed but Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNELS := hatch_build.py $(wildcard src/sparsedepth/kernels/*.c src/sparsedepth/kernels/*.h)

.PHONY: install oldest demo test quick coverage mutation lint types check release-check bench fuzz reproduce models dictionaries docs readme pictures clean

install: $(VENV)/.installed

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "sparsedepth needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml experiments/pyproject.toml $(KERNELS) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./experiments
	@touch $@

# The same with the oldest dependencies that pyproject.toml allows, in a fresh clone; `make test` then runs with them.
oldest: | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --resolution lowest-direct --editable '.[dev]' --editable ./experiments
	@touch $(VENV)/.installed

# What the demo needs; whoever has the whole development environment has it.
$(VENV)/.demo: pyproject.toml $(KERNELS) | $(VENV)/bin/python
	@test -e $(VENV)/.installed || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[reproduce]'
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# The README's numbers, from the pages of results.
readme: install
	$(BIN)/python docs/_readme.py

demo: $(VENV)/.demo
	$(BIN)/sparsedepth demo -o demo --force

test: install
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

# What answers within a minute on two cores: no test that takes long, no browser, service, cluster or docstring. Each
# process keeps to one core: threads of linear algebra would wait for each other.
quick: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist load -p no:schemathesis tests \
		-m "not (slow or browser or service or cluster)" --ignore tests/serve --ignore tests/test_cluster.py

# All tests, with the share of lines and branches that they execute; what runs in other processes is not counted.
coverage: install
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --cov --cov-report=term:skip-covered --cov-report=html:out/coverage

# Wrong changes that no test notices; about two hours on one core. Writes docs/results/mutation.md.
mutation: install
	$(BIN)/python tools/mutate.py collect
	$(BIN)/python tools/mutate.py run
	$(BIN)/python tools/mutate.py page

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/pyright

check: lint types test

# What a release must pass: its archives are well formed, install into a clean environment, and work there.
RELEASE := dist/.venv
release-check: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*.tar.gz dist/*.whl
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[reproduce]" pytest
	cd dist && .venv/bin/sparsedepth doctor
	cd dist && .venv/bin/sparsedepth demo -o demo --force
	cd dist && .venv/bin/python -m pytest -q -p no:cacheprovider --doctest-modules --pyargs \
		sparsedepth.restore sparsedepth.sensors sparsedepth.streams sparsedepth.coding sparsedepth.geometry
	rm -rf $(RELEASE) dist/demo

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/holes.py
	$(BIN)/python benchmarks/restoring.py
	$(BIN)/python benchmarks/stereo.py
	$(BIN)/python benchmarks/graph_cuts.py

# Coverage-guided fuzzing of every reader, ten minutes each; `make fuzz MINUTES=1` for a short look.
MINUTES ?= 10
fuzz: $(VENV)/.fuzz
	$(BIN)/python fuzzing/run.py --minutes $(MINUTES)

reproduce: install
	$(BIN)/sparsedepth reproduce all

# Everything under src/sparsedepth/models, trained again from the data sets in $$SPARSEDEPTH_DATA: about two hours. Each
# script writes its own file, which names the script, the data, the seed and the commit. Later ones use earlier ones.
models: dictionaries
	$(BIN)/python training/outlier_classifier.py
	$(BIN)/python training/variance_measured.py
	$(BIN)/python training/variance_filled.py
	$(BIN)/python training/flying_pixels.py
	$(BIN)/python training/stereo_variance.py

# From Middlebury 2005 + 2006: about half an hour.
dictionaries: install
	@test -n "$$SPARSEDEPTH_DATA" || { echo "set SPARSEDEPTH_DATA to the folder of the data sets"; exit 1; }
	learn() { name=$$1; shift; (cd "$$SPARSEDEPTH_DATA" && "$(CURDIR)/$(BIN)/sparsedepth" learn \
		middlebury2005/*/disp[15].png middlebury2006/*/disp[15].png \
		--profile middlebury --scale 3 --force "$$@" \
		-o "$(CURDIR)/src/sparsedepth/models/dictionaries/$$name.safetensors"); }; \
	learn phi1 --as-paper --steps 900 --held-out motorcycle && \
	learn phi2 --as-paper --steps 900 --held-out motorcycle --holes keep && \
	learn phi3 --as-paper --steps 900 --held-out motorcycle --noise stationary && \
	learn phi1_annealed --steps 1500 && \
	learn default --patch 8 --atoms 256 --every 2 --every 3 --every 4 && \
	learn phi1_32 --steps 500 --initial 1 --patch 32 --atoms 1024 --half

# The pictures of the pages for users, drawn by their own blocks.
pictures: install
	$(BIN)/python docs/_pictures.py

clean:
	rm -rf $(VENV) demo docs/_build docs/auto_examples docs/commands.md dist src/sparsedepth/kernels/compiled .pytest_cache .ruff_cache .hypothesis
