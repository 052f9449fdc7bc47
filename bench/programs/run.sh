#!/usr/bin/env bash
# Programs on a file system, in real time on a 1 TB virtual drive, each with a cold cache, in one run:
#
#   bare-S        the drive with its own queue, the kernel's scheduler S (none, mq-deadline, bfq) on the block device;
#                 take the best of them as the time alone
#   headtime      headtime in front of the drive, nothing in the background
#   scrub         the same while `headtime scrub` reads the whole disk in gaps and idle time
#   bfq-idle      the drive, bfq, and `ionice -c3 dd` that reads the whole disk (1 MiB, direct)
#   deadline-dd   the drive, mq-deadline, and the same dd without a class
#
# usage: run.sh [JSON]       (root; QUICK=1: a small tree, minutes; more in common.sh; the setups can be chosen with SETUPS)
#
# Prints each program's time, the background rate in MB/s, how often filling stopped, and the processor time used by the
# server (which includes the virtual drive) and the background reader. That time is not available to a program that
# computes. With JSON the same as one object a line. The file system is attached with `headtime attach` in every case. A
# machine that has other things to do makes a virtual drive late: the server's own lateness is printed for each run.
set -euo pipefail
. "$(dirname "$0")/common.sh"

json=${1:-}
setups=${SETUPS:-bare-none bare-mq-deadline bare-bfq headtime scrub bfq-idle deadline-dd}
check_machine
find_headtime
begin
[ -z "$json" ] || : >"$json"

# metric NAME: its value now.
metric() {
    local at
    at=$(sed -n 's|.*metrics: http://127.0.0.1:\([0-9]*\)/.*|\1|p' "$dir/log")
    exec 3<>"/dev/tcp/127.0.0.1/$at"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    awk -v name="$1" '$1 == name { print $2 }' <&3 | tail -1
    exec 3>&-
}
# scheduler NAME: sets it for the block device; fails if the kernel has none of that name.
scheduler() {
    local queue=/sys/block/${device#/dev/}/queue/scheduler
    if ! grep -qw "$1" "$queue" 2>/dev/null; then return 1; fi
    echo "$1" >"$queue"
}
# dd_bytes: what the reader has read.
dd_bytes() { sed -n 's/^rchar: //p' "/proc/$reader/io" 2>/dev/null || echo 0; }
read_all() { "$@" dd if="$device" of=/dev/null bs=1M iflag=direct 2>/dev/null & reader=$!; }

# busy: seconds of processor time that the server and what reads in the background have had.
busy() {
    for pid in $server $reader $scrub; do sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null || true; done |
        awk -v hz="$(getconf CLK_TCK)" '{ t += $12 + $13 } END { printf "%.2f", t / hz }'
}

# once SETUP FS PROGRAM: prints a row.
once() {
    local setup=$1 fs=$2 p=$3 seconds from=0 to=0 stops=- rate=- stops_from=0 busy
    case $setup in
        headtime | scrub) start serve headtime ;;
        *) start disk ;;
    esac
    case $setup in
        bare-*) scheduler "${setup#bare-}" || { say "skipped: $setup: the kernel has no such scheduler"; finish; return; } ;;
        bfq-idle) scheduler bfq || { say "skipped: $setup: the kernel has no bfq"; finish; return; } ;;
        deadline-dd) scheduler mq-deadline || { say "skipped: $setup: the kernel has no mq-deadline"; finish; return; } ;;
        *) scheduler none || true ;;
    esac
    cold "$fs"; before "$p"; cold "$fs"
    case $setup in
        scrub)
            "$headtime" scrub --control "$dir/control.sock" --restart --journal "$dir/journal" --json >"$dir/scrub.json" 2>"$dir/scrub.log" &
            scrub=$!
            sleep 1
            from=$(metric headtime_free_bytes_total) stops_from=$(metric headtime_fill_stops_total) ;;
        bfq-idle) read_all ionice -c3; sleep 1; from=$(dd_bytes) ;;
        deadline-dd) read_all; sleep 1; from=$(dd_bytes) ;;
    esac
    local began ended
    busy=$(busy)
    began=$(now_ns)
    program "$p" || die "$p failed"
    ended=$(now_ns)
    busy=$(awk -v a="$busy" -v b="$(busy)" 'BEGIN { printf "%.2f", b - a }')
    seconds=$(awk -v ns=$((ended - began)) 'BEGIN { printf "%.3f", ns / 1e9 }')
    case $setup in
        scrub)
            to=$(metric headtime_free_bytes_total)
            stops=$(awk -v a="$stops_from" -v b="$(metric headtime_fill_stops_total)" 'BEGIN { print b - a }') ;;
        bfq-idle | deadline-dd) to=$(dd_bytes) ;;
    esac
    [ "$to" = 0 ] || rate=$(awk -v a="$from" -v b="$to" -v s="$seconds" 'BEGIN { printf "%.1f", (b - a) / s / 1e6 }')
    stop_reader
    stop_scrub
    after "$p"
    finish
    local late
    late=$(sed -n 's/.*late by p50 [0-9]* us, p99 \([0-9]*\) us.*/\1/p' "$dir/log" | tail -1)
    [ -n "$late" ] || late=$(tr -d ' \n' <"$dir/served.json" | sed -n 's/.*"lateness_us":{[^}]*"p99":\([0-9]*\).*/\1/p')
    printf '%-5s %-8s %-17s %9.2f s %8s MB/s %6s stops  busy %s s  late p99 %s us\n' "$fs" "$p" "$setup" "$seconds" "$rate" "$stops" "$busy" "${late:--}"
    [ "${late:-0}" -le 1000 ] || invalid=1
    [ -z "$json" ] || printf '{"fs":"%s","program":"%s","setup":"%s","seconds":%s,"background_mb_s":%s,"fill_stops":%s,"busy_seconds":%s,"late_p99_us":%s}\n' \
        "$fs" "$p" "$setup" "$seconds" "$(null "$rate")" "$(null "$stops")" "$busy" "$(null "${late:--}")" >>"$json"
}
invalid=
null() { [ "$1" = - ] && echo null || echo "$1"; }

for fs in $systems; do
    image "$fs"
    for p in $programs; do
        for s in $setups; do once "$s" "$fs" "$p"; done
    done
done
[ -z "$invalid" ] || say "the virtual drive was more than 1 ms late at p99 in some runs: this machine was too busy, and their times do not count"
