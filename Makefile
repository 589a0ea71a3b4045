# Thin names for what the scripts in tools/ and the CMake presets do.
.DEFAULT_GOAL := help
.PHONY: help build demo test check bench figures plot docs package python lint format clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

build: ## optimised build in build/release
	tools/install-deps.sh --for build
	cmake --preset release
	cmake --build --preset release

demo: ## a guided tour; EDGES=FILE PERIOD=year|month use your own edge list, ARGS= goes through
	EDGES="$(EDGES)" PERIOD="$(PERIOD)" tools/demo.sh $(ARGS)

test: ## format check and the tests that catch the most defects; STAGES="more asan" for others (tools/test.sh lists them)
	tools/test.sh $(STAGES)

check: ## every stage, in its long form: all tests, the sanitizers, fuzzing, clang, new machines
	VELLUM_LONG=1 tools/test.sh all

bench: ## NAME=x runs one benchmark and writes build/bench/x.json; EDGES=FILE for graph, KV=FILE for lmdb, ARGS= goes through
	@test -n "$(NAME)" || { echo "make bench NAME=x; there are:"; \
	  ls -d bench/*.cpp bench/*/ | grep -v bench/lib | \
	  sed -E 's,bench/([^./]*).*,  \1,' | sort -u; exit 2; }
	tools/install-deps.sh --for build,bench
	cmake --preset release
	cmake --build --preset release --target bench_$(NAME)
	@mkdir -p build/bench
	$(or $(wildcard bench/$(NAME)/table.py),build/release/bench/bench_$(NAME)) --json build/bench/$(NAME).json \
	  $(if $(EDGES),--edges "$(EDGES)") $(if $(KV),--kv "$(KV)") $(ARGS)

figures: ## README's table of figures: Vellum and its peers in one run of about ten minutes; ARGS="--only numpy"
	tools/install-deps.sh --for build,bench
	cmake --preset release
	cmake --build --preset release --target benchmarks vellum_cli
	bench/figures.py --json build/bench/figures.json $(ARGS)

# Debian's python3 has Debian's matplotlib; another one on the PATH need not.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
plot: ## NAME=stl, graph, paging or metall draws what that benchmark has measured, beside build/bench/NAME.json
	@test -f "build/bench/$(NAME).json" || { echo "make bench NAME=stl, graph, paging or metall first"; exit 2; }
	$(PYTHON) bench/plot.py build/bench/$(NAME).json

docs: ## the documents as a site in build/docs/site (MkDocs from PyPI, in an environment of its own)
	tools/docs.sh

package: ## Debian packages in build/package/packages
	tools/packages.sh

python: ## the Python package's wheel, tested in a fresh environment; PYTHON=python3.12, ARGS="--optional"
	PYTHON="$(PYTHON)" tools/python.sh $(ARGS)

lint: ## format check, links and clang-tidy
	tools/test.sh lint tidy

format: ## rewrite every source in the project's format
	tools/lint.sh --fix

clean: ## remove build/
	rm -rf build
