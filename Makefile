# Every target does its own set-up: a virtual environment in .venv, of files whose hashes stand in lock/. torch alone has
# a pinned version without a hash: its builds for CPUs, CUDA and ROCm are different files of one version.
PYTHON ?= python3
BIN := .venv/bin
CHROMIUM ?= chromium
# Processors whose rounding this one can show: the libraries of linear algebra take their names.
ROUNDING_OF := $(if $(filter x86_64 amd64,$(shell uname -m)),Nehalem Haswell,NEOVERSEN1 ARMV8)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --no-deps --only-binary :all: -r

.PHONY: demo deploy-demo browser-demo test rounding others browser docs picture lint types check bench lock audit clean

demo: .venv/.core  ## the main job: the flaw of published figures, what wins honestly, five books for one reader, a page for people
	$(BIN)/ownview compare popularity local-only fedmf pfedrec --protocol honest --protocol paper --rounds 16 --measure-every 4 \
		--set local_epochs=1 --set learning_rate=0.1 --jobs 2 --resume runs/demo
	$(BIN)/ownview compare popularity markov ease fedease fednext --resume runs/demo-honest
	$(BIN)/ownview recommend runs/demo-honest/fedease-honest-seed0 --user 58 -k 5
	$(BIN)/ownview page runs/demo-honest/fedease-honest-seed0 -o runs/books.html --title "Books you may like" --force

deploy-demo: .venv/.deploy  ## masked FedEASE: a server and three devices as processes of their own, one comes late, one is killed and back, a page in the end; loopback alone
	$(BIN)/python examples/deploy.py runs/deploy-demo

browser-demo: .venv/.test  ## two servers and fifty readers in Node, one sealed message each; loopback alone
	$(BIN)/python examples/browser_demo.py runs/browser-demo

test: .venv/.test  ## unit, property and conformance tests; real-data tests where the data is
	$(BIN)/python -m pytest -n 2 --dist loadgroup

rounding: .venv/.test  ## what compares engines or asks for learning, with the rounding of other processors
	set -e; for processor in $(ROUNDING_OF); do \
		echo "rounding as $$processor does"; \
		ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=$$processor \
			$(BIN)/python -m pytest -q -n 2 tests/testing/test_conformance.py -k "learns or equals"; \
	done

others: .venv/.test .venv/.others-lenskit .venv/.others-recbole  ## tests that score lists which LensKit and RecBole make themselves, each in an environment of its own
	$(BIN)/python -m pytest -n 0 tests/others

browser: .venv/.test  ## the report and the page for people in headless Chromium; skipped with the reason where there is none
	$(BIN)/python -m pytest -n 0 -m browser tests/browser

docs: .venv/.docs  ## the documentation site in site/; fails where a link leads nowhere
	$(BIN)/zensical build --strict --clean
	! grep -rlE '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//' site --include=*.html  # the site asks nobody

picture: demo  ## the README's pictures: the report and the page of what the demo made, as headless Chromium shows it
	$(BIN)/ownview report runs/demo-honest -o runs/report.html --title "Books: what readers take next" --force
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,1480 \
		--screenshot=$(CURDIR)/docs/pictures/report.png file://$(CURDIR)/runs/report.html
	$(BIN)/ownview page runs/demo-honest/fedease-honest-seed0 -o runs/page.html --force
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,820 --virtual-time-budget=15000 \
		--screenshot=$(CURDIR)/docs/pictures/page.png "file://$(CURDIR)/runs/page.html#picks=7,13,126"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/mypy

check: lint types test  ## everything a change must pass

bench: .venv/.core  ## speed of the engines, in one run
	$(BIN)/python -m benchmarks.engine

lock: .venv/.dev  ## the hashes in lock/ anew, after a change of pyproject.toml or constraints.txt; asks the package index
	$(BIN)/python -m tools.lock

audit: .venv/.dev .venv/.docs  ## licences, a bill of materials in build/sbom.json, known faults where their database can be reached
	$(BIN)/python -m tools.bill build/sbom.json
	$(BIN)/python -m tools.faults build/sbom.json

clean:
	rm -rf .venv runs site .cache benchmarks/results .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.created:
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] < (3, 15), f"Python 3.11 to 3.14 needed, found {sys.version}"'
	$(PYTHON) -m venv .venv
	touch $@

.venv/.core: .venv/.created pyproject.toml constraints.txt $(wildcard lock/*.txt)
	$(LOCKED) lock/core.txt
	$(PIP) --only-binary :all: -c constraints.txt torch
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

# What these packages need and what our tests need exclude each other; only torch, which is large, is the one that is there.
.venv/.others-%: tests/others/%.txt .venv/.core
	$(PYTHON) -m venv --clear .venv/others/$*
	.venv/others/$*/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r $<
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		$$(.venv/others/$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth
	touch $@

.venv/.%: lock/%.txt .venv/.core
	$(LOCKED) $<
	touch $@
