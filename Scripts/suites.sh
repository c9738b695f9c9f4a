# shellcheck shell=bash
# Sourced by the scripts that run the built Swift tests: in several processes side by side, one after another in each.
# Many tests hold a thread of the small pool with a real socket or a real process: within one process they would keep each
# other waiting beyond every bound.
. Scripts/shared.sh

# The tests of these files in Tests/HouseTests are the first half of those of the executables, the others the second.
# (A test is called `Target.Suite/function/File.swift:line:column`; a suite has no file, and must not match by itself.)
readonly FIRST_HALF='^HouseTests\..*/(?!Supabase)[^/]*\.swift'
# All tests of the executables: of HouseTests only the rules of the layout need none.
readonly NEEDS_EXECUTABLES='^HouseTests\..*/(?!LayoutTests\.)[^/]*\.swift'
# About half of the time that the unit tests take.
readonly HALF_OF_UNITS='^(APIServer|FuzzCorpus|OAuth|Desktop|DesktopNotices|Terminal|SupabaseAuth)Tests\.'

# Runs the built tests in one process for each group of arguments, side by side, within $1 seconds. Groups follow a log
# each: LOG ARGUMENTS... -- LOG ARGUMENTS... Returns the first status that is not 0; a run without its last line, which
# says how many tests there were, is one that broke off: 1 at least.
run_side_by_side() {
    local seconds=$1 program pids=() logs=() arguments=() log result status=0
    shift
    program=$("${SWIFT:-swift}" build --show-bin-path)/ringbackPackageTests.xctest
    trap 'kill "${pids[@]}" 2>/dev/null; wait; exit 130' INT TERM
    while [ $# -gt 0 ]; do
        log=$1 arguments=()
        shift
        while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=("$1") && shift; done
        if [ $# -gt 0 ]; then shift; fi
        : >"$log"
        # Not by `swift test`: two of those wait for each other's lock on the build directory.
        logged "$log" timeout --kill-after=30 "$seconds" "$program" --testing-library swift-testing --no-parallel \
            "${arguments[@]}" &
        pids+=($!) logs+=("$log")
    done
    for log in "${!pids[@]}"; do
        result=0
        wait "${pids[log]}" || result=$?
        if [ "$result" -eq 0 ] && ! grep -q ' Test run with [1-9]' "${logs[log]}"; then result=1; fi
        if [ "$status" -eq 0 ]; then status=$result; fi
    done
    trap - INT TERM
    return "$status"
}

# The sum of what Scripts/count-tests says of each log. $1: the exit status of what ran last.
count_all() {
    local result=$1 log passed=0 failed=0 skipped=0 more_passed more_failed more_skipped
    shift
    for log in "$@"; do
        read -r more_passed more_failed more_skipped < <(Scripts/count-tests 0 <"$log")
        passed=$((passed + more_passed)) failed=$((failed + more_failed)) skipped=$((skipped + more_skipped))
    done
    if [ "$result" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
    echo "$passed $failed $skipped"
}
