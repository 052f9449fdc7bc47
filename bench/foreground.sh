#!/bin/sh
# The foreground behind `headtime serve` against the bare drive with its own queue (`headtime disk`), in real time: eight workloads of fio, each
# on a fresh virtual drive of the same seed, the one and the other in turn.
#
# usage: foreground.sh [CELL...]                 (any user; needs fio with its nbd engine; nothing but unix sockets in a directory of its own)
#
# Without CELL all of them run: random-read-4k random-read-64k random-write mixed sequential-read-128k sequential-read-1m sequential-write-1m oltp
#
# Printed for each: requests a second and 99th percentile of both, and their ratios, headtime to bare drive: more than 1
# is faster in the first, less than 1 in the second. Beside them: the 99th percentile of each server's lateness in
# reporting what its virtual drive had completed. On a busy machine the virtual drive is late, and so are the measured
# times. If the lateness reaches milliseconds, measure the row again.
#
# In the environment:
#   QUICK=1      5 s each, once (4 minutes); otherwise SECONDS_EACH (20) and REPETITIONS (3), of which the median ratios are printed
#   DRIVE        hitachi-7k1000c, or another one of `headtime profiles`
#   HEADTIME     the program; it is built where this is not given
#   RUN          put before every program that runs, as "chrt -f 20" (root): of use where the machine is not quiet
#   TMPDIR       where backing files are: some GiB; /dev/shm keeps the machine's own disk out of it
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/listens.sh
. "$here/listens.sh"
cells="random-read-4k random-read-64k random-write mixed sequential-read-128k sequential-read-1m sequential-write-1m oltp"
seconds=${SECONDS_EACH:-20}
repetitions=${REPETITIONS:-3}
if [ -n "${QUICK:-}" ]; then seconds=5 repetitions=1; fi
for n in "$seconds" "$repetitions"; do
    case $n in '' | 0* | *[!0-9]*) echo "foreground.sh: SECONDS_EACH and REPETITIONS: expected whole numbers from 1, found $n" >&2; exit 2 ;; esac
done
for cell in "$@"; do
    case " $cells " in *" $cell "*) ;; *) echo "foreground.sh: expected $cells, found $cell" >&2; exit 2 ;; esac
done
[ $# -gt 0 ] || set -- $cells
drive=${DRIVE:-hitachi-7k1000c}
run=${RUN:-}
command -v fio >/dev/null || { echo "foreground.sh: needs fio" >&2; exit 1; }
fio --enghelp 2>/dev/null | grep -qw nbd || { echo "foreground.sh: this fio has no nbd engine" >&2; exit 1; }
headtime=${HEADTIME:-}
if [ -z "$headtime" ]; then
    cargo build --manifest-path "$here/../Cargo.toml" --release --locked --quiet -p headtime
    headtime=${CARGO_TARGET_DIR:-$here/../target}/release/headtime
fi
[ -x "$headtime" ] || { echo "foreground.sh: HEADTIME: expected a program, found $headtime" >&2; exit 2; }

dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state"
server=
finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; server=; fi
}
trap 'finish; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# fio's arguments for a cell.
asked() {
    case $1 in
        random-read-4k) echo --rw=randread --bs=4k --iodepth=4 ;;
        random-read-64k) echo --rw=randread --bs=64k --iodepth=4 ;;
        random-write) echo --rw=randwrite --bs=4k --iodepth=8 ;;
        mixed) echo --rw=randrw --rwmixread=50 --bs=4k --iodepth=8 ;;
        sequential-read-128k) echo --rw=read --bs=128k --iodepth=2 ;;
        sequential-read-1m) echo --rw=read --bs=1m --iodepth=4 ;;
        sequential-write-1m) echo --rw=write --bs=1m --iodepth=4 ;;
        oltp) echo --rw=randrw --rwmixread=67 --bs=8k --iodepth=16 ;;
    esac
}

# A fresh drive, served by $1: bare | headtime.
begin() {
    rm -f "$dir/disk.img" "$dir/nbd.sock" "$dir/control.sock" "$dir/served"
    if [ "$1" = bare ]; then
        $run "$headtime" disk "$drive" --backing "$dir/disk.img" --nbd "unix:$dir/nbd.sock" --seed 1 --json >"$dir/served" 2>>"$dir/log" &
    else
        printf '[disk]\ndrive = "%s"\nbacking = "disk.img"\nseed = 1\n[listen]\nnbd = ["unix:nbd.sock"]\ncontrol = "control.sock"\n[[export]]\nname = ""\n' "$drive" >"$dir/serve.toml"
        $run "$headtime" serve --json "$dir/serve.toml" >"$dir/served" 2>>"$dir/log" &
    fi
    server=$!
    listens "$dir/nbd.sock" "$server" "$dir/log" || exit 1
}

# measure WHO CELL: requests a second, p99 in ms, and how late the server was, p99 in ms.
measure() {
    begin "$1"
    # The same places for both; a second is left out until queues are full.
    # shellcheck disable=SC2046
    $run fio --name=c --ioengine=nbd --uri="nbd+unix:///?socket=$dir/nbd.sock" $(asked "$2") --time_based --runtime="$seconds" --ramp_time=1 \
        --randseed=7 --norandommap --unified_rw_reporting=mixed --output-format=json --output="$dir/fio" 2>>"$dir/log" >/dev/null
    finish
    late=$(awk '/"lateness_us"/ { l = 1 } l && /"p99"/ { gsub(/[^0-9]/, "", $2); print $2; exit }' "$dir/served")
    awk -v late="${late:-0}" '/"mixed"/ { m = 1 } m && /"iops" :/ && n == "" { gsub(/[^0-9.]/, "", $3); n = $3 }
        m && /"99.000000"/ && p == "" { gsub(/[^0-9]/, "", $3); p = $3 } END { printf "%.2f %.3f %.2f\n", n, p / 1e6, late / 1e3 }' "$dir/fio"
}

printf '%s, %s s each, %s times\n' "$drive" "$seconds" "$repetitions"
printf '%-22s %10s %10s %10s %10s %8s %8s %14s\n' "" "bare /s" "p99 ms" "headtime/s" "p99 ms" "rate" "p99" "late p99, ms"
for cell in "$@"; do
    : >"$dir/ratios"
    for repetition in $(seq "$repetitions"); do
        # Neither is always the first.
        if [ $((repetition % 2)) = 1 ]; then order="bare headtime"; else order="headtime bare"; fi
        for who in $order; do measure "$who" "$cell" >"$dir/$who"; done
        paste -d ' ' "$dir/bare" "$dir/headtime" >>"$dir/ratios"
    done
    # The repetition with the median ratio of rates.
    awk '{ print $4 / $1, $0 }' "$dir/ratios" | sort -n | awk -v cell="$cell" '{ line[NR] = $0 } END {
        split(line[int((NR + 1) / 2)], f, " ")
        printf "%-22s %10.1f %10.1f %10.1f %10.1f %8.3f %8.3f %6.2f %7.2f\n", cell, f[2], f[3], f[5], f[6], f[1], f[6] / f[3], f[4], f[7] }'
done
