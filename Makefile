# The tasks of the project; `make help` lists them.

SWIFT ?= swift
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=
PROFILES ?= apps many bigdb media
SCALE ?= 1
REPS ?= 3
DAYS ?= 10
# An import of a module that is not a declared dependency is an error.
STRICT = --explicit-target-dependency-import-check error
RELEASE = -c release --static-swift-stdlib --product sandboxctl --scratch-path .build $(STRICT)

# Debian packages: to build the program, for the checks, and for programs that the tests compare it
# with.
BUILD_PACKAGES = libarchive-dev libbz2-dev libcurl4-openssl-dev libfuse3-dev liblzma-dev \
  libsodium-dev libsqlite3-dev libssl-dev libyaml-dev libzstd-dev pkg-config zlib1g-dev
CHECK_PACKAGES = mandoc python3
BENCH_PACKAGES = restic rsync time zstd
TEST_PACKAGES = age attr borgbackup btrfs-progs bubblewrap busybox-static bzip2 cron dbus fish flatpak fuse3 \
  libarchive-tools lz4 openssh-client openssh-server ostree procps python3-jsonschema python3-venv restic sqlite3 squashfs-tools \
  strace systemd xfsprogs unzip xz-utils zip zsh zstd
STORE_PACKAGES = ceph-common ceph-mon ceph-osd radosgw

MAN_PAGES = $(wildcard Man/*.[1-9])
SWIFT_DIRECTORIES = $(wildcard Sources Tests Benchmarks Tools policies Fuzzers/Sources)

# The tests are built in the release configuration (Package.swift). Tests are found by a section of the
# bundle that nothing refers to.
TEST = -c release -Xswiftc -enable-testing --disable-dead-strip --scratch-path .build-test $(STRICT)
# TESTED=1 uses the program of that build for all targets: ten minutes less, and ten percent slower.
ifdef TESTED
  RELEASE = $(TEST) --product sandboxctl
endif
# MEMORY_DISK=1 puts temporary files on a file system in memory: CI machines have slow disks.
ifdef MEMORY_DISK
  IN_MEMORY = Tools/memory-disk.sh
endif
# The path of the program, for targets that depend on its build.
PROGRAM = "$$($(SWIFT) build $(RELEASE) --show-bin-path)/sandboxctl"
RUN_TESTS = $(IN_MEMORY) $(PYTHON) Tools/run-tests.py \
  "$$($(SWIFT) build $(TEST) --show-bin-path)/sandboxctlPackageTests.xctest"
# The second run, over encrypted repositories. It always tests a sample of the fault and crash
# points, except with SANDBOXCTL_TEST_ALL=1 make test-encrypted: the calls are almost the same.
RUN_ENCRYPTED = SANDBOXCTL_TEST_ENCRYPTED=1 $(RUN_TESTS) --suites @Tests/encrypted-suites.txt

# The ways to divide a scan among threads (ScanVariant); a test of scans usually uses one of them.
DIVISIONS = 1 2 3 4 5 6 7 8 9

# The sample of the tests of commands that `make test` runs, 1 to 5; 0 for a random one.
SAMPLE ?= 0

TSAN = --sanitize=thread --scratch-path .build-tsan
# Suites that use threads but start no program: child processes are not instrumented.
TSAN_SUITES ?= SystemIOTests.(WorkersTests|BoundedQueueTests|SpillableArrayTests)|ArchiveStoreTests.(ThreadTests|CheckpointTests|PackClosingTests|PackerPoolTests|MultiStreamHasherTests|PackSharingTests|SharingSessionTests|SessionTests|MergingTests|TwoWritersTests|IndexCacheTests|DeliveryTests|EarlyLeaseTests|ReaderLeaseTests|WriterLeaseTests|ReadingWatchTests|PruneTests|PruneConcurrencyTests|CopyConcurrencyTests)|OperationTests.(BackupTests|SmallFileBatchTests|IncrementalTests|ParallelScanTests|PurgeOperationTests|DatabaseTests|StateInterruptionTests|ConcurrentBackupTests|MergeTests|QueriesAheadTests)|RemoteStorageTests.(ExpectedRangesTests|ReadAheadTests|S3RangeListingTests|TransferTests|UploadLimitTests|S3WaitTests|SFTPWaitTests|OutageWatchTests)|MountTests.(ContentAheadTests|ReceivingTurnTests)

# A debug build whose functions count their calls.
COVERAGE = --product sandboxctl --scratch-path .build-coverage $(STRICT) \
  -Xswiftc -profile-generate -Xswiftc -profile-coverage-mapping

SOAK_MINUTES ?= 10
HOSTS ?= 200
ENTRIES ?= 60000
DATABASE_MB ?= 3000
PRUNE_MINUTES ?= 1
FUZZ_SECONDS ?= 60
TARGETS ?=

.PHONY: help deps build run stores peers test-build test test-rest test-encrypted test-divisions test-all scale scale-tables bench-small tsan soak soak-databases soak-prune fuzz fuzz-build fuzz-seeds lint test-tools install bench readme man structure clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

deps: ## install missing Debian packages
	@Tools/deps.sh $(BUILD_PACKAGES) $(CHECK_PACKAGES) $(TEST_PACKAGES)

build: deps ## make a release build with the Swift libraries linked statically
	$(SWIFT) build $(RELEASE)

run: build ## run the tour on the sample device
	Tools/tour.sh $(PROGRAM)

stores: ## install Ceph RGW, for the tests of real stores of objects (200 MB)
	@Tools/deps.sh $(STORE_PACKAGES)

peers: deps ## install the programs that read exported backups in the tests (.build-peers, 250 MB)
	@Tools/peers.sh $(PYTHON)

test-build: deps ## build the tests
	$(SWIFT) build --build-tests $(TEST)

test: test-build ## run the tests, of those of commands one of five samples (SAMPLE=1 to 5)
	$(RUN_TESTS) --sample $(SAMPLE)

test-rest: ## run the tests that `make test SAMPLE=N` omits, and those of encrypted repositories
	@test "$(SAMPLE)" != 0 || { echo "make: SAMPLE=N is missing: 'make test' has printed it" >&2; exit 2; }
	$(MAKE) test-build
	$(RUN_TESTS) --rest-of $(SAMPLE)
	SANDBOXCTL_TEST_ALL=0 $(RUN_ENCRYPTED)

test-encrypted: test-build ## run the tests of repositories over encrypted ones only
	$(RUN_ENCRYPTED)

test-divisions: test-build ## run the tests of scans, backups, restores and purges with each division of work
	@set -e; for number in $(DIVISIONS); do \
	  echo "== division $$number"; \
	  SANDBOXCTL_TEST_ALL=0 SANDBOXCTL_TEST_DIVISION=$$number \
	    $(RUN_TESTS) --trait spreadScans --count 3; \
	done

test-all: peers test-build ## run all tests, with every fault and crash point of plain repositories
	SANDBOXCTL_TEST_ALL=1 $(RUN_TESTS)
	SANDBOXCTL_TEST_ALL=0 $(RUN_ENCRYPTED)
	$(MAKE) test-divisions

scale: build ## run every command on a device with a container of ENTRIES files (60000)
	$(IN_MEMORY) $(PYTHON) Tools/scale.py $(PROGRAM) $(ENTRIES)
	$(IN_MEMORY) $(PYTHON) Tools/scale_index.py $(PROGRAM) 100000 --limit 150
	$(IN_MEMORY) $(PYTHON) Tools/scale_growth.py $(PROGRAM) small

scale-tables: build ## measure memory for the tables of docs/scale.md (an hour, 40 GB of disk)
	$(PYTHON) Tools/scale_memory.py $(PROGRAM) --limit 150
	$(PYTHON) Tools/scale_memory.py $(PROGRAM) 1000000 --flat 1 --limit 150
	$(PYTHON) Tools/scale_growth.py $(PROGRAM)
	$(PYTHON) Tools/scale_index.py $(PROGRAM)

tsan: ## run the threaded suites under the thread sanitizer (half an hour)
	$(SWIFT) build --build-tests $(TSAN)
	clang -O1 -Wall -Wextra -Werror -shared -fPIC -o .build-tsan/tsan-mutex.so \
	  Tests/Sanitizer/tsan-mutex.c
	TSAN_OPTIONS="halt_on_error=0 exitcode=66" LD_PRELOAD=$(CURDIR)/.build-tsan/tsan-mutex.so \
	  "$$($(SWIFT) build $(TSAN) --show-bin-path)/sandboxctlPackageTests.xctest" \
	  --testing-library swift-testing --filter "$(TSAN_SUITES)"

soak: soak-databases ## kill and verify backups and restores, SOAK_MINUTES (10) for each kind, HOSTS (200)
	$(PYTHON) Tools/soak.py $(PROGRAM) $(SOAK_MINUTES)
	$(PYTHON) Tools/soak_prune.py $(PROGRAM) $(SOAK_MINUTES)
	@set -e; for store in test ceph ssh; do \
	  $(PYTHON) Tools/soak_prune.py $(PROGRAM) $(SOAK_MINUTES) --store $$store; \
	done
	$(PYTHON) Tools/soak_fleet.py $(PROGRAM) --hosts $(HOSTS) --files 1000
	$(PYTHON) Tools/soak_fleet.py $(PROGRAM) --hosts 20 --files 1000 --write-only
	$(PYTHON) Tools/soak_trees.py $(PROGRAM) $(SOAK_MINUTES)
	SANDBOXCTL_TEST_ALL=1 $(SWIFT) test \
	  --filter "UpdateKillTests|UpdateFaultTests|InstallFaultTests|ReinstallFaultTests|RollbackCrashTests" \
	  --filter "DeviceFaultTests|InterruptedRestoreTests" \
	  --filter "RemovalTests|UpdatePropertyTests|RollbackTests|AppReportTests|RollbackMacOSTests|OperationTests.UpdateTests"

soak-prune: build ## back up, forget and prune at once with kills, for PRUNE_MINUTES (1)
	$(IN_MEMORY) $(PYTHON) Tools/soak_prune.py $(PROGRAM) $(PRUNE_MINUTES)

soak-databases: build ## back up a database of DATABASE_MB (3000) during writes, restore and check it
	$(IN_MEMORY) $(PYTHON) Tools/soak_databases.py $(PROGRAM) $(DATABASE_MB)

fuzz: ## run each fuzzer for FUZZ_SECONDS (60; 0: replay the corpus), or TARGETS="pack tree"
	$(PYTHON) Fuzzers/run.py --seconds $(FUZZ_SECONDS) $(TARGETS)

fuzz-build: ## build the fuzzers
	$(PYTHON) Fuzzers/run.py --build

fuzz-seeds: ## regenerate the seeds of the fuzzers' corpus
	$(PYTHON) Fuzzers/run.py --seeds

lint: test-tools ## formatting, imports, sizes of files, language, man pages
	$(SWIFT) format lint --strict --parallel --recursive Package.swift $(SWIFT_DIRECTORIES)
	$(PYTHON) Tools/check-imports.py .
	$(PYTHON) Tools/check-sizes.py .
	$(PYTHON) Tools/check-words.py .
	$(PYTHON) Tools/check-labels.py .
	Tools/check-man.sh $(MAN_PAGES)

test-tools: ## test the checks and tools
	$(PYTHON) -B -m unittest discover -q -s Tests/ToolTests

install: build ## install the program, its man pages and completions below PREFIX
	install -D -s -m 755 $(PROGRAM) "$(DESTDIR)$(PREFIX)/bin/sandboxctl"
	@set -e; for page in $(MAN_PAGES); do \
	  install -D -m 644 "$$page" \
	    "$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}"; \
	done
	@set -e; script="$(DESTDIR)$(PREFIX)/bin/sandboxctl --generate-completion-script"; \
	share="$(DESTDIR)$(PREFIX)/share"; \
	mkdir -p "$$share/bash-completion/completions" "$$share/zsh/site-functions" \
	  "$$share/fish/vendor_completions.d"; \
	$$script bash > "$$share/bash-completion/completions/sandboxctl"; \
	$$script zsh > "$$share/zsh/site-functions/_sandboxctl"; \
	$$script fish > "$$share/fish/vendor_completions.d/sandboxctl.fish"
	@echo "installed below $(DESTDIR)$(PREFIX)"

bench: ## run the benchmarks against other programs (PROFILES="apps many" SCALE=0.2 REPS=3 DAYS=10 CHECK=1)
	@Tools/deps.sh $(BENCH_PACKAGES)
	$(PYTHON) Benchmarks/run.py --profiles $(PROFILES) --scale $(SCALE) --reps $(REPS) \
	  --days $(DAYS) $(if $(CHECK),--check)

bench-small: ## run the benchmarks at one percent of the size, without budgets
	@Tools/deps.sh $(BENCH_PACKAGES)
	TESTED=$(TESTED) $(PYTHON) Benchmarks/run.py --parts-scale 0.02 --reps 1 \
	  --scale 0.01 --days 3 --profiles $$(test ! -d "$${SANDBOXCTL_SHARED:-../shared}/bench" || echo apps)

readme: ## regenerate the tour in the README
	$(SWIFT) build --product sandboxctl
	Tools/readme-tour.py "$$($(SWIFT) build --show-bin-path)/sandboxctl" README.md

man: ## regenerate the generated man pages
	$(SWIFT) build --product sandboxctl
	Tools/make-man.py "$$($(SWIFT) build --show-bin-path)/sandboxctl" Man

structure: deps ## measure the structure of the sources, and the files that a stored file passes
	$(SWIFT) build $(COVERAGE)
	$(PYTHON) Tools/structure.py --way "$$($(SWIFT) build $(COVERAGE) --show-bin-path)/sandboxctl"

clean: ## remove build products
	$(SWIFT) package clean
