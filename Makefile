# heatsoak: `make soak` shows it, `make test` proves it. Each works alone on a clean clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: soak test lint clean gpu-check

soak: $(STAMP)  ## a smoke soak of the default workload on the best device
	$(BIN)/heatsoak run --protocol smoke

test: lint  ## every check and every test
	$(BIN)/python -m pytest -n 3 --dist loadfile  # many tests wait for processes

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("heatsoak needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	# The tests compile an emulated NVML; where the system has no compiler, this is one.
	command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt ziglang
	touch $@

# Installs nothing and makes no environment: takes the PYTHON that is there, with its torch.
gpu-check:  ## doctor, a short soak of each workload and nvidia-smi, on a machine with an NVIDIA card
	$(PYTHON) benchmarks/gpu_check.py --out $(or $(OUT),gpu-check.json) $(if $(WHEELS),--wheels $(WHEELS))

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
