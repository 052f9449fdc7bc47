# shellcheck shell=sh
# Sourced by scripts that start a server.

# listens SOCKET PID LOG: waits until the server with this process id listens; if it ends, or does
# not within 10 s, prints the end of its log and fails.
listens() {
    for _ in $(seq 100); do
        [ -S "$1" ] && return
        kill -0 "$2" 2>/dev/null || break
        sleep 0.1
    done
    echo "${0##*/}: the server does not listen:" >&2
    tail -3 "$3" >&2
    return 1
}
