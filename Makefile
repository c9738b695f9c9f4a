# `make demo` and `make test` do everything, set-up included; `make` lists the rest.

SWIFT ?= swift
export SWIFT
PREFIX ?= /usr/local
# Not every shell replaces the ~ of an argument.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
# Where systemd looks for user units: below /usr, /usr/local and ~/.local alike.
UNITDIR ?= $(PREFIX)/$(if $(filter $(HOME)/.local,$(PREFIX)),share,lib)/systemd/user
INSTALL ?= install
# Without symbols and debug information: half the size. `make install INSTALL_STRIP=` keeps them.
INSTALL_STRIP ?= -s
RELEASE := .build/release
# For what packages the executables: with RELEASE=DIRECTORY those that are there are taken.
BUILT = test "$(RELEASE)" != .build/release || Scripts/release >/dev/null
FORMAT_FLAGS := --configuration .swift-format --recursive Sources Tests Package.swift \
    $(wildcard Examples/*/Package.swift Examples/*/Sources)

.PHONY: help demo check test test-tsan test-browser test-pages test-keyring test-sessions test-crash test-faults soak test-canaries test-oidf test-real test-mcp test-api test-postgres test-rows test-hosts test-qr test-ssh test-tools test-desktop test-notices test-systemd test-foreign test-process-ids test-memory test-confined test-packages test-python vendor deb dist fuzz fuzz-ci bench pictures lint format build release install uninstall clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { \
	    head = sprintf("  make %-13s", $$1); text = ""; count = split($$2, words, " "); \
	    for (i = 1; i <= count; i++) { \
	        if (length(head text words[i]) >= 80) { print head text; head = sprintf("%20s", ""); text = "" } \
	        text = text " " words[i]; \
	    } \
	    print head text }' $(MAKEFILE_LIST)

demo: ## set up, build and run the main job: a sign-in ends as a session on the socket
	@Scripts/needs build
	@Scripts/release >/dev/null
	@"$(RELEASE)/ringback" demo

check: ## lint and the unit tests, in under two minutes once they are built; no release executables
	@$(MAKE) --no-print-directory lint
	@Scripts/needs test
	@Scripts/test quick

test: ## set up, build and run every test; the last line says "N passed, N failed"
	@Scripts/needs test
	@Scripts/test

test-tsan: ## the tests of shared state under ThreadSanitizer
	@Scripts/needs test
	@Scripts/test-tsan

test-browser: ## sign in with real Chromium and Firefox under Xvfb; some of it needs root; SHORT=1 for a part
	@Scripts/needs browser
	@Scripts/release >/dev/null
	@Campaigns/browser.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-pages: ## the pages after a sign-in, and the sign-in page in Chromium and Firefox: sizes, colours, axe-core (PyPI); PICTURES=DIR
	@Scripts/needs browser
	@Scripts/release >/dev/null
	@Campaigns/pages.py --bin "$(RELEASE)" $(if $(SHORT),--short) $(if $(PICTURES),--pictures "$(PICTURES)")
	@Campaigns/signin_page.py --bin "$(RELEASE)" $(if $(SHORT),--short) $(if $(PICTURES),--pages "$(PICTURES)")

test-keyring: ## the vault's key in a real gnome-keyring, on a private bus: locked, unlocked, killed, restarted
	@Scripts/needs keyring
	@Scripts/test-keyring

bench: ## measure beside a bare epoll server in C and, if installed, oidc-agent; targets and verdicts; ONLY="load idle"
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Benchmarks/run --bin "$(RELEASE)" $(foreach part,$(ONLY),--only $(part))

test-sessions: ## bits flipped, key sources, clocks that jump, 500 clients at 200 expiries: what sessions survive
	@Scripts/needs test
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Scripts/test-sessions "$(RELEASE)"

test-crash: ## kill the daemon at every write of every operation; SHORT=1 for a minute of it
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/crash.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-faults: ## let disk, network and provider fail under the daemon; SHORT=1 for a minute of it
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/faults.py --bin "$(RELEASE)" $(if $(SHORT),--short)

soak: ## 50 short-lived sessions, 20 clients, 1 % faults; SECONDS=600
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/soak.py --bin "$(RELEASE)" --seconds $(or $(SECONDS),600)

test-canaries: ## look for every secret of a run where none may be
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/canaries.py --bin "$(RELEASE)"

test-oidf: ## the OpenID conformance suite's relying-party modules, with FAPI 2, offline: the sandbox tells each module's lie
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/oidf.py --bin "$(RELEASE)"

test-real: ## sign in at canaille and, by device, django-oauth-toolkit (PyPI) through their pages, and with DPoP at idpyoidc
	@Scripts/needs real
	@Scripts/release >/dev/null
	@Campaigns/real/run --bin "$(RELEASE)"

test-mcp: ## MCP servers: every way to one, real servers and clients (PyPI: mcp, fastmcp), busy bridges; SECONDS=600
	@Scripts/needs api
	@Scripts/release >/dev/null
	@Campaigns/mcp_routes.py --bin "$(RELEASE)"
	@Campaigns/mcp_bridge.py --bin "$(RELEASE)" $(if $(SHORT),--short)
	@Campaigns/mcp.py --bin "$(RELEASE)"
	@Campaigns/mcp_soak.py --bin "$(RELEASE)" --seconds $(or $(SECONDS),600)

test-api: ## hold the daemon to its OpenAPI document with schemathesis (PyPI); SECONDS=30 for each of three variants
	@Scripts/needs api
	@Scripts/release >/dev/null
	@Campaigns/api.py --bin "$(RELEASE)" --seconds $(or $(SECONDS),30)

test-postgres: ## run the SQL of share/supabase in a real PostgreSQL, private, without TCP; SHORT=1 for a part
	@Scripts/needs postgres
	@Scripts/release >/dev/null
	@Campaigns/postgres.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-rows: ## the rows that hosts share, in a real PostgreSQL and through pgbouncer: takers at once, crashes, hostile SQL
	@Scripts/needs rows
	@Scripts/test-rows

test-hosts: ## daemons in networks of their own share a vault on a real PostgreSQL: expiries, crashes, outages, failover, 10,000 accounts; needs root; SHORT=1; ONLY=PART,PART
	@Scripts/needs hosts
	@Scripts/needs hosts-tools
	@Scripts/release >/dev/null
	@Campaigns/hosts.py --bin "$(RELEASE)" $(if $(SHORT),--short) $(if $(ONLY),--only "$(ONLY)")

pictures: ## the demo on a terminal, from a real run, the sequence of a sign-in: in .build/pictures
	@Scripts/needs pictures
	@Scripts/release >/dev/null
	@Campaigns/pictures.py --bin "$(RELEASE)"

test-qr: ## read the QR codes that `ringback login` prints with a real reader, zbar
	@Scripts/needs qr
	@Scripts/release >/dev/null
	@Campaigns/qr.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-ssh: ## a restricted socket over ssh -R and a sign-in over ssh -L, with a real sshd on loopback
	@Scripts/needs ssh
	@Scripts/release >/dev/null
	@Campaigns/ssh.py --bin "$(RELEASE)"

test-tools: ## git, kubectl, skopeo, curl and package managers get their tokens from Ringback; SHORT=1 for a part
	@Scripts/needs tools
	@Scripts/needs notices
	@Scripts/release >/dev/null
	@Campaigns/tools.py --bin "$(RELEASE)" $(if $(SHORT),--short)
	@Campaigns/tools_at_once.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-desktop: ## hand links to ringback by xdg-open and gio, in a clean home
	@Scripts/needs desktop
	@Scripts/release >/dev/null
	@Campaigns/desktop.py --bin "$(RELEASE)"

test-systemd: ## install under a real systemd user manager: units, watchdog, reload, crash, a probe of each directive; needs root
	@Scripts/needs systemd
	@Scripts/release >/dev/null
	@Campaigns/systemd.py --bin "$(RELEASE)"

test-notices: ## notifications at a real dunst under Xvfb, and, as root, apps of links under a real user manager; SHORT=1
	@Scripts/needs notices
	@Scripts/release >/dev/null
	@Campaigns/notices.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-foreign: ## another user of the machine races for the port that their callback came from; needs root; SHORT=1 for a part
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/foreign.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-process-ids: ## process ids used again, and exec: the audit log names the right program; needs root; SHORT=1 for a part
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/process_ids.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-memory: ## look for tokens and keys in the daemon's memory after a lock and after sign-outs; needs root; SHORT=1 for a part
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@Campaigns/memory.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-confined: ## what a program reaches behind the wall of "ringback run", kills at 50 points, job control; needs root; SHORT=1
	@Scripts/needs confined
	@Scripts/release >/dev/null
	@Campaigns/relayed.py --bin "$(RELEASE)" $(if $(SHORT),--short)
	@Campaigns/confined.py --bin "$(RELEASE)" $(if $(SHORT),--short)

test-packages: ## install, upgrade, remove and purge the package in Debian 12 and 13, made by debootstrap; needs root; SHORT=1 for a part; REBUILD=1 builds anew in another folder, which must make the same ones
	@Scripts/needs $(if $(SHORT),package,packages)
	@$(BUILT)
	@Campaigns/packages.py --bin "$(RELEASE)" $(if $(SHORT),--short) $(if $(FORMER),--former "$(FORMER)") $(if $(REBUILD),--rebuild 1)

test-python: ## the Python package at a real daemon and the sandbox, and the apps in Python and node
	@Scripts/needs bench
	@Scripts/release >/dev/null
	@RINGBACK_TEST_BIN="$(RELEASE)" python3 -m unittest discover -s Clients/python/tests

fuzz: ## look for inputs that break a parser or its laws; TARGET=json SECONDS=60
	@Scripts/needs build
	@Scripts/fuzz "$(TARGET)" "$(or $(SECONDS),60)"

fuzz-ci: ## a minute for every fuzz target: for a nightly run
	@Scripts/needs build
	@Scripts/fuzz "" 60

lint: ## check the style of the Swift sources, and the scripts' syntax
	@command -v $(SWIFT) >/dev/null || Scripts/needs build
	@$(SWIFT) format lint --strict --parallel $(FORMAT_FLAGS)
	@grep -lE "^#!.*bash" Scripts/* .ci/run | xargs -n 1 bash -n

format: ## format the Swift sources in place
	@$(SWIFT) format --in-place --parallel $(FORMAT_FLAGS)

build: ## a debug build
	@Scripts/needs build
	@bash -c '. Scripts/shared.sh && debug_build'

release: ## the release executables, in .build/release
	@Scripts/needs build
	@Scripts/release

deb: ## the Debian package of the release executables, in dist
	@Scripts/needs package
	@$(BUILT)
	@Scripts/deb "$(RELEASE)"

dist: ## a tarball of the release executables with an installer, in dist
	@Scripts/needs package
	@$(BUILT)
	@Scripts/dist "$(RELEASE)"

vendor: ## keep the sources of the dependencies in vendor/, and build from there, without network
	@Scripts/needs build
	@Scripts/vendor

install uninstall: export DESTDIR := $(DESTDIR)
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export UNITDIR := $(UNITDIR)
install uninstall: export INSTALL := $(INSTALL)
install uninstall: export INSTALL_STRIP := $(INSTALL_STRIP)
install: ## copy the release executables, units, manual pages and completions below PREFIX (default /usr/local); DESTDIR works
	@test -x "$(RELEASE)/ringbackd" || { echo 'ringback: run `make release` first (as yourself, not as root)' >&2; exit 1; }
	@Scripts/install install "$(RELEASE)"
	@echo 'Next, as the user: $(if $(filter /usr /usr/local $(HOME)/.local,$(PREFIX)),systemctl --user daemon-reload,systemctl --user link $(UNITDIR)/ringback.socket $(UNITDIR)/ringback.service) && systemctl --user enable --now ringback.socket'

uninstall: ## remove what `make install` copied
	@Scripts/install uninstall

clean: ## remove what was built; downloaded packages stay
	@$(SWIFT) package clean
	@rm -rf .build-tsan .build-bench
