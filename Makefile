# make book | test | serve | lab | results | clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HTML := _build/html/index.html
PORT ?= 8000

.PHONY: book test serve lab results clean browser

book: $(VENV)/book
	$(BIN)/jupyter-book build . -W -n --keep-going
	@echo "The book: $(CURDIR)/$(HTML)"

test: $(VENV)/test browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

# A stamp is as new as the requirements it was installed from.
$(VENV)/book: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/test: tests/requirements.txt $(VENV)/book
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

# The system's Chromium if there is one, else playwright's own.
browser: $(VENV)/test
	@command -v chromium chromium-browser google-chrome >/dev/null || \
		$(BIN)/python -m playwright install chromium || \
		echo "No Chromium found and none could be installed: browser tests will be skipped" \
			"(with CI=true they fail). Install one, e.g. apt-get install chromium."

serve:
	@test -f $(HTML) || { echo "No book yet: run make book first"; exit 1; }
	@echo "http://127.0.0.1:$(PORT)"
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: $(VENV)/book
	@test -f $(HTML) || { echo "No notebooks yet: run make book first"; exit 1; }
	@mkdir -p _build/lab/notebooks && ln -sfn ../html/book _build/lab/book
	@# Copies, and none over one that is there: a reader's work outlives the next make book.
	@cp -n _build/html/_notebooks/*.ipynb _build/lab/notebooks/ || true
	PYTHONPATH=$(CURDIR):$(CURDIR)/book $(BIN)/jupyter lab --ServerApp.root_dir=$(CURDIR) \
		--LabApp.default_url=/lab/tree/_build/lab/notebooks/index.ipynb

results: $(VENV)/book
	$(BIN)/python -m experiments run

clean:
	rm -rf _build .pytest_cache .ruff_cache .hypothesis *.egg-info
