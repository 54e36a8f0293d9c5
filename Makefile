# Builds, installs and tests the extension with PGXS, in this folder or, by
# `make -f FOLDER/Makefile`, in any other.

EXTENSION = idempotency
MODULE_big = idempotency
OBJS = src/idempotency.o src/settings.o src/duration.o src/state.o \
	src/paths.o src/digest.o src/fingerprint.o src/access.o src/address.o src/catalog.o src/index.o \
	src/durability.o src/ticket.o src/writer.o src/triggers.o src/referred.o src/record_row.o src/record.o \
	src/pending.o src/policy.o src/answer.o src/attempt.o src/claim.o src/complete.o src/replay.o \
	src/execute.o src/batch.o src/event.o src/intent_row.o src/intent.o \
	src/intend.o src/outbox.o src/settle.o src/dispatch.o src/step.o \
	src/adopt.o src/recover.o src/internal.o src/owner.o src/stat.o \
	src/stat_shmem.o src/guard.o src/expire.o src/purge.o src/maintain.o

# The install script is joined from these, in this order.
ROOMS = access ticket record guard policy fingerprint claim complete replay \
	execute batch event adopt step intent outbox reconcile recover history \
	expire maintain stat overview grant

home := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
control := $(home)/$(EXTENSION).control
version := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(control))
ifeq ($(version),)
$(error $(control) names no default_version)
endif

install_script = $(EXTENSION)--$(version).sql
DATA_built = $(install_script)
DATA = $(patsubst $(home)/%,%,$(wildcard $(home)/src/upgrade/*.sql))

# Packagers may empty WERROR.  The server's headers need the first two -Wno-,
# PG_TRY the third, which gcc gives for variables that are only read; the
# others let clang take the settings of a server that gcc compiled.
WERROR = -Werror
PG_CFLAGS = -Wextra -Wshadow -Wstrict-prototypes -Wold-style-definition \
	-Wwrite-strings $(WERROR) -Wno-unused-parameter -Wno-sign-compare \
	-Wno-clobbered -Wno-unknown-warning-option \
	-Wno-ignored-optimization-argument -Wno-ignored-attributes

names = $(sort $(basename $(notdir $(wildcard $(home)/$(1)))))
REGRESS := $(call names,sql/*.sql)
REGRESS_OPTS = --load-extension=$(EXTENSION)
ISOLATION := $(call names,test/specs/*.spec)
ISOLATION_OPTS = --inputdir=$(home)/test --load-extension=$(EXTENSION)
TAP_TESTS := $(if $(wildcard $(home)/test/t/*.pl),1)
PROVE_TESTS = test/t/*.pl
ENCODING = UTF8
NO_LOCALE = 1

# These install what they need, the server's development files included, so
# they stand before PGXS and work without it.
scripts = test torture matrix demo bench bench-long format check-format
.PHONY: $(scripts)
all:
test:
	$(home)/test/run $(SUITES)
torture:
	$(home)/test/torture/run $(CAMPAIGNS)
matrix:
	$(home)/test/matrix $(VERSIONS)
demo:
	$(home)/examples/demo/run
bench:
	$(home)/bench/report short
bench-long:
	$(home)/bench/report long $(PARTS)
format:
	$(home)/test/format
check-format:
	$(home)/test/format --check

ifneq ($(filter-out $(scripts),$(or $(MAKECMDGOALS),all)),)

PG_CONFIG = pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(wildcard $(PGXS)),)
$(error $(PG_CONFIG) finds no PGXS: install the server development files)
endif

# Bitcode for the JIT needs the clang and the llvm-lto that the server names.
setting = $(shell sed -n 's/^$(1) *= *//p' $(dir $(PGXS))../Makefile.global)
llvm = $(call setting,CLANG) $(call setting,LLVM_BINPATH)/llvm-lto
ifneq ($(words $(wildcard $(llvm))),2)
override with_llvm := no
endif

include $(PGXS)

SHLIB_LINK += $(filter -lcrypto, $(LIBS))
PG_PROVE_FLAGS += -I test/lib

$(OBJS) $(OBJS:.o=.bc): $(wildcard $(home)/src/*.h) | $(CURDIR)/src
$(CURDIR)/src:
	$(MKDIR_P) $@

$(install_script): $(ROOMS:%=$(home)/src/%.sql) $(control)
	{ printf '%s\n' '\echo Use "CREATE EXTENSION $(EXTENSION)" to load this file. \quit'; \
	  cat $(filter %.sql,$^); } >$@.tmp
	mv $@.tmp $@

endif
