# shellcheck shell=bash
# Sourced by the scripts that run tests: one way to build in debug mode, and one way to run a command so that its output
# is both shown and kept, and so that nothing of it is left behind.

# A debug build. Without debug information the executables are linked sooner, and a tenth of the processor's time is saved;
# a test that fails names its place anyway. For a debugger there is `swift build`, which builds everything anew.
# `nice`: the campaigns that `make test` runs beside it wait for real programs.
debug_build() { nice "${SWIFT:-swift}" build -debug-info-format none "$@"; }

# Runs "${@:2}" without stdin, in a session of its own; its output goes to stdout and is appended to the file $1.
# Returns the command's status. What is left of the session then (a stuck test outlives `swift test`, which had put it into
# another process group) is ended; an interrupt ends it all.
logged() {
    local log=$1 out tee_pid pid status=0
    shift
    exec {out}> >(exec tee -a "$log")
    tee_pid=$!
    setsid "$@" </dev/null >&"$out" 2>&1 {out}>&- &
    pid=$!
    exec {out}>&-
    trap 'pkill -KILL -s "$pid" || true; exit 130' INT TERM
    wait "$pid" || status=$?
    trap - INT TERM
    pkill -KILL -s "$pid" || true
    # What began a session of its own may hold the pipe: wait for the last line, not for ever.
    timeout 10 tail --pid="$tee_pid" -f /dev/null || kill "$tee_pid" 2>/dev/null || true
    return "$status"
}
