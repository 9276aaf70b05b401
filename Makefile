# `make demo` and `make test` do all their own set-up: a virtual environment, the build of the C++ core, the install.
PYTHON ?= python3
VENV ?= .venv
CXX ?= g++
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLEAN_VENV := build/clean-venv

# The datasets are optional: tests and benchmarks that need them say so when they are absent.
ifneq ($(wildcard ../shared/data),)
export ILHASH_DATA ?= $(abspath ../shared/data)
endif

CORE := $(wildcard $(foreach folder,src/core src/core/bindings,$(folder)/*.cpp $(folder)/*.hpp $(folder)/*.inc))
# An editable install knows the modules that were there when it was made: a folder is newer when one comes or goes.
PACKAGES := $(shell find src/ilhash -type d -not -name __pycache__)

# The vector kernels are compiled once per instruction set; the C++ tests run once with each that the machine has.
COMPILE := -std=c++17 -Isrc/core
KERNELS := dispatch.o vector_portable.o
LEVELS := portable
ifneq ($(findstring x86_64,$(shell $(CXX) -dumpmachine)),)
COMPILE += -DILHASH_X86=1
KERNELS += vector_avx2.o vector_avx512.o
LEVELS += $(if $(shell grep -sw -m 1 avx2 /proc/cpuinfo),avx2) $(if $(shell grep -sw -m 1 avx512vl /proc/cpuinfo),avx512)
build/%/vector_avx2.o build/%/vector_avx2.tidy: INSTRUCTIONS := -mavx2 -mfma -mbmi -mbmi2 -mpopcnt
build/%/vector_avx512.o build/%/vector_avx512.tidy: INSTRUCTIONS := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 \
  -mfma -mbmi -mbmi2 -mpopcnt
# GCC 12 warns of its own header (its bug 105593).
build/%/vector_avx512.o: INSTRUCTIONS += -Wno-unknown-warning-option -Wno-uninitialized -Wno-maybe-uninitialized
else
NOT_HERE := %_avx2.cpp %_avx512.cpp
endif
SANITIZED := build/sanitized
SANITIZE := $(COMPILE) -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all

.PHONY: help demo docs test test-all lint lint-core test-core test-tsan test-arm test-fuzz test-python test-wheel fuzz fuzz-core fuzz-files materials \
  bench dist lock clean

help:
	@echo "make demo      train on handwritten digits, compare, draw (under a minute after set-up)"
	@echo "make docs      the documentation site in build/docs, its tutorials executed (some minutes)"
	@echo "make test      lint, types, C++ tests under sanitizers, a few seconds of fuzzing, Python tests, wheel in a clean environment"
	@echo "make test-all  the same with the slow tier"
	@echo "make fuzz      bytes of a fuzzer against the core, then forged files, FUZZ_SECONDS each (by default an hour)"
	@echo "make bench     speed against named peers, memory, quality (two hours)"
	@echo "make lint      ruff, mypy, clang-format, clang-tidy, types of one name in two files of the core"
	@echo "make dist      the source and wheels of a release, checked and used with every Python at hand"
	@echo "make materials the bill of materials of a release (CycloneDX): what is needed at run time, with licences"
	@echo "make lock      renew the requirements-*.lock after a change of dependencies"

$(READY): requirements-dev.lock pyproject.toml CMakeLists.txt $(CORE) $(PACKAGES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

demo: $(READY)
	$(BIN)/ilhash demo --output demo-output

# Fails at a warning, a link that leads nowhere or a cell that does not run; asks nothing of any network.
docs: $(READY)
	$(BIN)/python tools/docsite/build.py --output build/docs

test: lint test-core test-tsan test-fuzz test-python test-wheel

test-all: lint test-core test-tsan test-arm test-fuzz
	$(BIN)/python -m pytest -n 2 --dist loadfile -m ""
	$(MAKE) test-wheel

# Types twice: as a developer's Python has them, and names alone by the oldest Python that is promised.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 --disable-error-code no-any-return --no-warn-unused-ignores
	$(MAKE) lint-core

# Types of one name in two files are found where the files are linked, and only with link-time optimization.
LINTED := build/lint
UNITS := $(patsubst src/core/%.cpp,$(LINTED)/%,$(filter-out $(NOT_HERE),$(filter %.cpp,$(CORE))))
$(LINTED)/bindings/%: HEADERS = -DNB_SHARED $(addprefix -isystem ,$(shell $(BIN)/python -c \
  "import nanobind, sysconfig; print(nanobind.include_dir(), sysconfig.get_path('include'))"))

$(LINTED)/%.o: src/core/%.cpp $(filter-out %.cpp,$(CORE))
	mkdir -p $(@D)
	$(CXX) $(COMPILE) $(HEADERS) $(INSTRUCTIONS) -O0 -fPIC -flto -c $< -o $@

$(LINTED)/core.so: $(UNITS:=.o)
	$(CXX) -O0 -shared -flto -Werror=odr -Werror=lto-type-mismatch $^ -o $@

$(LINTED)/%.tidy: src/core/%.cpp $(filter-out %.cpp,$(CORE)) .clang-tidy src/core/bindings/.clang-tidy
	mkdir -p $(@D)
	$(BIN)/clang-tidy --quiet $< -- $(COMPILE) $(HEADERS) $(INSTRUCTIONS)
	touch $@

lint-core:
	$(BIN)/clang-format --dry-run --Werror $(CORE) $(wildcard src/core/tests/* src/core/fuzz/*.?pp)
	$(MAKE) --jobs=2 $(LINTED)/core.so $(UNITS:=.tidy)

$(SANITIZED)/%.o: src/core/%.cpp $(filter-out %.cpp,$(CORE)) src/core/tests/check.hpp
	mkdir -p $(@D)
	$(CXX) $(SANITIZE) $(INSTRUCTIONS) -c $< -o $@

$(SANITIZED)/test_core: $(addprefix $(SANITIZED)/,tests/test_core.o graph.o label_graph.o label_cut.o label_zstep.o mincut.o zstep.o pair_loss.o digits.o $(KERNELS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_labels: $(addprefix $(SANITIZED)/,tests/test_labels.o graph.o label_graph.o label_cut.o label_zstep.o mincut.o zstep.o $(KERNELS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_svm: $(addprefix $(SANITIZED)/,tests/test_svm.o svm.o $(KERNELS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_scan: $(addprefix $(SANITIZED)/,tests/test_scan.o code_groups.o pivots.o nearest.o weighted.o histograms.o $(KERNELS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_trees: $(addprefix $(SANITIZED)/,tests/test_trees.o trees.o tree_margins.o boosting.o $(KERNELS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_cut: $(addprefix $(SANITIZED)/,tests/test_cut.o cut.o)
	$(CXX) $(SANITIZE) $^ -o $@

# All of the core but the bindings.
ROOM_UNITS := $(patsubst src/core/%.cpp,%.o,$(filter-out $(NOT_HERE),$(wildcard src/core/*.cpp)))

$(SANITIZED)/test_checks: $(addprefix $(SANITIZED)/,tests/test_checks.o $(ROOM_UNITS))
	$(CXX) $(SANITIZE) $^ -o $@

$(SANITIZED)/test_texts: $(addprefix $(SANITIZED)/,tests/test_texts.o texts.o)
	$(CXX) $(SANITIZE) $^ -o $@

CORE_TESTS := $(addprefix $(SANITIZED)/,test_core test_labels test_svm test_scan test_trees test_cut test_checks test_texts)

test-core:
	$(MAKE) --jobs=2 $(CORE_TESTS)
	for level in $(LEVELS); do for test in $(CORE_TESTS); do ILHASH_SIMD=$$level $$test || exit 1; done; done

# The threaded paths once more, under ThreadSanitizer.
RACED := build/raced
RACE := $(COMPILE) -O1 -g -Wall -Wextra -Werror -fsanitize=thread

$(RACED)/%.o: src/core/%.cpp $(filter-out %.cpp,$(CORE)) src/core/tests/check.hpp
	mkdir -p $(@D)
	$(CXX) $(RACE) $(INSTRUCTIONS) -c $< -o $@

$(RACED)/test_threads: $(addprefix $(RACED)/,tests/test_threads.o $(ROOM_UNITS))
	$(CXX) $(RACE) $^ -o $@

test-tsan:
	$(MAKE) --jobs=2 $(RACED)/test_threads
	TSAN_OPTIONS=halt_on_error=1 $(RACED)/test_threads

# The portable kernels as they are on aarch64, another memory model and signed-by-default rules included: compiled by a cross
# compiler, run by an emulator in user mode. Optimized as a wheel is, so that what is tested is what is shipped.
ARM := build/aarch64
ARM_CXX := $(shell command -v aarch64-linux-gnu-g++ 2>/dev/null)
ARM_RUN := $(shell command -v qemu-aarch64 2>/dev/null || command -v qemu-aarch64-static 2>/dev/null)
ARM_SYSROOT ?= /usr/aarch64-linux-gnu
ARM_COMPILE := -std=c++17 -Isrc/core -O3 -Wall -Wextra -Werror -ffp-contract=off
ARM_TESTS := $(patsubst src/core/tests/%.cpp,$(ARM)/%,$(wildcard src/core/tests/test_*.cpp))
ARM_UNITS := $(patsubst src/core/%.cpp,$(ARM)/%.o,$(filter-out %_avx2.cpp %_avx512.cpp,$(wildcard src/core/*.cpp)))

$(ARM)/%.o: src/core/%.cpp $(filter-out %.cpp,$(CORE)) src/core/tests/check.hpp
	mkdir -p $(@D)
	$(ARM_CXX) $(ARM_COMPILE) -c $< -o $@

$(ARM)/test_%: $(ARM)/tests/test_%.o $(ARM_UNITS)
	$(ARM_CXX) $^ -pthread -o $@

.PRECIOUS: $(ARM)/%.o

test-arm:
ifeq ($(and $(ARM_CXX),$(ARM_RUN)),)
	@echo "test-arm: skipped, a cross compiler and an emulator are needed (Debian: apt-get install g++-aarch64-linux-gnu qemu-user)"
else
	$(MAKE) --jobs=2 $(ARM_TESTS)
	for test in $(ARM_TESTS); do $(ARM_RUN) -L $(ARM_SYSROOT) $$test || exit 1; done
endif

# Fuzzers of the core: bytes become arguments, pass the checks of the bindings or not, and reach the kernels. libFuzzer
# comes with clang; the corpus in the repository is where a run begins, what it finds stays in build.
FUZZ_CXX := $(shell echo 'extern "C" int LLVMFuzzerTestOneInput(const char *, unsigned long) { return 0; }' | \
  clang++ -x c++ - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null && command -v clang++)
FUZZ_SECONDS ?= 3600
FUZZED := build/fuzz
FUZZERS := $(patsubst src/core/fuzz/fuzz_%.cpp,%,$(wildcard src/core/fuzz/fuzz_*.cpp))
FUZZ := $(COMPILE) -Isrc/core/fuzz -O1 -g -Wall -Wextra -Werror \
  -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all

$(FUZZED)/%.o: src/core/%.cpp $(filter-out %.cpp,$(CORE)) $(wildcard src/core/fuzz/*.hpp)
	mkdir -p $(@D)
	$(FUZZ_CXX) $(FUZZ) -fsanitize=fuzzer-no-link $(INSTRUCTIONS) -c $< -o $@

$(FUZZED)/fuzz_%: $(FUZZED)/fuzz/fuzz_%.o $(addprefix $(FUZZED)/,$(ROOM_UNITS))
	$(FUZZ_CXX) $(FUZZ) -fsanitize=fuzzer $^ -o $@

.PRECIOUS: $(FUZZED)/%.o

# $(call run_fuzzers,seconds for each)
define run_fuzzers
	$(MAKE) --jobs=2 $(addprefix $(FUZZED)/fuzz_,$(FUZZERS))
	for room in $(FUZZERS); do \
	  mkdir -p $(FUZZED)/corpus/$$room $(FUZZED)/findings && \
	  $(FUZZED)/fuzz_$$room -max_total_time=$(1) -max_len=1024 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZED)/findings/$$room- $(FUZZED)/corpus/$$room src/core/fuzz/corpus/$$room \
	    > $(FUZZED)/$$room.log 2>&1 || { tail -40 $(FUZZED)/$$room.log; exit 1; }; \
	  echo "fuzz $$room: $$(sed -n 's/^stat::number_of_executed_units: *//p' $(FUZZED)/$$room.log) inputs, 0 findings"; \
	done
endef

fuzz-core:
ifeq ($(FUZZ_CXX),)
	@echo "fuzz-core: skipped, clang++ with its fuzzer is not installed (Debian: apt-get install clang libclang-rt-dev)"
else
	$(call run_fuzzers,$(shell expr $(FUZZ_SECONDS) / $(words $(FUZZERS))))
endif

# Forged files, opened in child processes: a target for each module of tests/fuzz that is neither a helper nor a test.
FORGED := $(filter-out _% test_%,$(notdir $(basename $(wildcard tests/fuzz/*.py))))

fuzz-files: $(READY)
	for target in $(FORGED); do \
	  $(BIN)/python -m tests.fuzz.$$target --seconds $(shell expr $(FUZZ_SECONDS) / $(words $(FORGED))) --seed $$(date +%s) || exit 1; \
	done

fuzz: fuzz-core fuzz-files

test-fuzz:
	$(MAKE) fuzz-core FUZZ_SECONDS=$(words $(FUZZERS))

# Files of tests are spread over two processes; a file's tests stay together, because they share what they start.
test-python: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

# What a user gets: the wheel, installed where nothing of ours is, running the demo.
test-wheel: $(READY)
	rm -rf build/wheel $(CLEAN_VENV)
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv $(CLEAN_VENV)
	$(CLEAN_VENV)/bin/python -m pip install --quiet "$$(ls build/wheel/*.whl)[plots]"
	test -s $(CLEAN_VENV)/lib/python*/site-packages/ilhash/serve/page/index.html
	cd build && clean-venv/bin/ilhash demo --output clean-demo
	test -s build/clean-demo/digits.png
	$(BIN)/python tools/docsite/cells.py docs/tutorials/first-codes.md > build/first-codes.py
	cd build && rm -rf clean-tutorial && mkdir clean-tutorial && cd clean-tutorial && \
	  MPLBACKEND=Agg ../clean-venv/bin/python ../first-codes.py

# A release as users get it, in dist: source, a wheel for every Python at hand, each used where nothing else is installed.
dist: $(READY)
	$(BIN)/python tools/dist.py --output dist

# Everything that ilhash and its extras need at run time, in the versions that were tested.
materials: $(READY)
	mkdir -p build
	$(BIN)/python tools/bill_of_materials.py --output build/ilhash.cdx.json

bench: $(READY)
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/parallel.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/trees.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/search.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/order.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/engines.py --random
	$(BIN)/python benchmarks/infinite_digits.py
	$(BIN)/python benchmarks/methods.py
	$(BIN)/python benchmarks/methods.py --data cifar10 --bits 64
	$(BIN)/python benchmarks/gist.py
	$(BIN)/python benchmarks/prune.py
	$(BIN)/python benchmarks/mix.py
	$(BIN)/python benchmarks/unlabeled.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/million.py

# One lock for all Python versions from 3.10 on: uv writes the markers and the SHA-256 of every file of each version, pip
# installs nothing else. Versions stay as they are where they still fit; `make lock UPGRADE=--upgrade` takes the newest.
# What a container installs is a part of what was tested.
COMPILE_LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-annotate --no-header
UPGRADE ?=
EVERYWHERE := data duckdb faiss haystack io langchain plots serve skops sqlite
lock: $(READY)
	$(COMPILE_LOCK) $(UPGRADE) --extra dev --no-emit-package ilhash pyproject.toml --output-file requirements-dev.lock
	$(COMPILE_LOCK) $(UPGRADE) --group build --output-file requirements-build.lock
	$(COMPILE_LOCK) --group test $(addprefix --extra ,$(EVERYWHERE)) --constraint requirements-dev.lock pyproject.toml \
	  --output-file requirements-test.lock
	$(COMPILE_LOCK) --extra serve --extra postgres --constraint requirements-dev.lock pyproject.toml --output-file requirements-serve.lock

clean:
	rm -rf build dist demo-output .mypy_cache .ruff_cache .pytest_cache
