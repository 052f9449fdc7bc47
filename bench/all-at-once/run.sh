#!/bin/sh
# Everything at once on one virtual drive in real time: five streams that are promised their requests, four applications that share what is
# left by weight, a program that is started again and again, and a scrub of the whole disk in the gaps. Experiment X1 has the same in virtual
# time (`headtime reproduce X1`).
#
# usage: run.sh [SECONDS [CONFIG.toml]]          (any user; nothing but unix sockets in a directory of its own)
#
# Another configuration's sockets must have the names of the example's, and its programs' export must be called shell.
#
# WRITER=N: half of the first stream's part of the disk becomes an export that fio writes to, N random writes of 4 to
# 64 KiB outstanding (needs fio with its nbd engine).
#
# The program is started alone on the idle server first (ALONE seconds, 30), then beside everybody else. HEADTIME and CLIENTS say where the two
# programs are that are otherwise built. What is printed in the end: each stream's quality, each application's share, the starts, the scrub's
# rate, what the server counted of its streams, and how late its completions were. A machine that has other things to do
# makes a virtual drive late, and a stream, too.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-60}
config=${2:-$here/../../examples/all-at-once.toml}
alone=${ALONE:-30}
for n in "$seconds" "$alone"; do
    case $n in '' | 0 | *[!0-9]*) echo "run.sh: SECONDS and ALONE: expected whole numbers from 1, found $n" >&2; exit 2 ;; esac
done
writer=${WRITER:-0}
case $writer in
    '' | *[!0-9]*) echo "run.sh: WRITER: expected a whole number of writes, found $writer" >&2; exit 2 ;;
esac
if [ "$writer" -gt 0 ] && ! fio --enghelp 2>/dev/null | grep -q nbd; then
    echo "run.sh: WRITER: expected fio with its nbd engine on the path" >&2; exit 2
fi
[ -r "$config" ] || { echo "run.sh: $config: expected a configuration of headtime serve" >&2; exit 2; }

target=${CARGO_TARGET_DIR:-$here/../../target}
headtime=${HEADTIME:-$target/release/headtime}
clients=${CLIENTS:-$target/release/examples/all-at-once}
if [ -z "${HEADTIME:-}" ] || [ -z "${CLIENTS:-}" ]; then
    cargo build --manifest-path "$here/../../Cargo.toml" --release --locked --quiet -p headtime -p headtime-serve --bin headtime --example all-at-once
fi

dir=$(mktemp -d)
# What a scrub has done of one disk is nothing to the next one.
export XDG_STATE_HOME="$dir/state"
server=
scrub=
load=
writes=
# Ends what was started, the clients first.
finish() {
    for pid in $load $writes $scrub $server; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    load= writes= scrub= server=
}
trap 'finish; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# The configuration's paths lie beside it.
cp "$config" "$dir/serve.toml"
if [ "$writer" -gt 0 ]; then
    awk '/^name *= *"stream-1"/ { first = 1 }
         first && /^start *=/ { gsub(/[^0-9]/, ""); start = $0; $0 = "start = \"" start " MiB\"" }
         first && /^size *=/ { gsub(/[^0-9]/, ""); half = int($0 / 2); $0 = "size = \"" half " MiB\""; first = 0 }
         { print }
         END { printf "\n[[export]]\nname = \"writer\"\nstart = \"%d MiB\"\nsize = \"%d MiB\"\n", start + half, half }
        ' "$config" >"$dir/serve.toml"
fi
"$headtime" serve --json "$dir/serve.toml" >"$dir/served" 2>"$dir/log" &
server=$!
for _ in $(seq 100); do
    [ -S "$dir/nbd.sock" ] && [ -S "$dir/control.sock" ] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
[ -S "$dir/nbd.sock" ] && [ -S "$dir/control.sock" ] || { echo "run.sh: the server does not listen:" >&2; tail -3 "$dir/log" >&2; exit 1; }

# A script waits for what runs beside it, so that Ctrl-C is heard at once.
beside() { "$@" & load=$!; wait "$load"; load=; }

beside "$clients" "$dir/serve.toml" "$alone" alone >"$dir/alone"

"$headtime" scrub --control "$dir/control.sock" --json >"$dir/scrub" 2>"$dir/scrub.log" &
scrub=$!
if [ "$writer" -gt 0 ]; then
    (cd "$dir" && exec fio --name=writer --ioengine=nbd --uri="nbd+unix:///writer?socket=$dir/nbd.sock" --rw=randwrite \
        --bsrange=4k-64k --iodepth="$writer" --time_based --runtime="$seconds" --output-format=terse \
        >"$dir/writes" 2>&1) &
    writes=$!
fi
beside "$clients" "$dir/serve.toml" "$seconds" >"$dir/all"
if [ -n "$writes" ]; then
    wait "$writes" || { echo "run.sh: fio: $(tail -1 "$dir/writes")" >&2; exit 1; }
    writes=
fi
# It says then what it has done.
kill -TERM "$scrub"
wait "$scrub" || true
scrub=

mean() { sed -n 's/^shell.*mean \([0-9]*\) ms.*/\1/p' "$1"; }
echo "$(sed -n 's/^drive *= *"\([^"]*\)".*/\1/p' "$config"), $seconds s"
echo
cat "$dir/all" "$dir/alone"
awk -v beside="$(mean "$dir/all")" -v alone="$(mean "$dir/alone")" 'BEGIN { if (alone > 0) printf "a start beside all takes %.2f times as long as alone\n", beside / alone }'
# Field 48 of fio's line is what was written, in KiB a second.
[ "$writer" -eq 0 ] || awk -F';' -v of="$writer" 'NF > 48 {
    printf "writer           %d writes outstanding, %.2f MB/s written\n", of, $48 / 976.5625
}' "$dir/writes"
echo
"$headtime" stream list --control "$dir/control.sock"
kill "$server"
wait "$server" || true
server=
echo
# The first of the figures with this name in a JSON object.
figure() { awk -v key="\"$1\":" '$1 == key { gsub(/[^0-9.]/, "", $2); print $2; exit }' "$2"; }
# What programs read is scrubbed with that, and need not be read for it.
awk -v s="$seconds" -v all="$(figure bytes "$dir/scrub")" -v free="$(figure free_sectors "$dir/served")" \
    'BEGIN { printf "scrub: %.2f MB/s, of which %.2f MB/s were read for it, and the rest by others\n", all / s / 1e6, free * 512 / s / 1e6 }'
sed -n '/"lateness_us"/,/}/p' "$dir/served" >"$dir/lateness"
echo "server: completions were late by p50 $(figure p50 "$dir/lateness") us, p99 $(figure p99 "$dir/lateness") us, at most $(figure max "$dir/lateness") us"
grep warning "$dir/log" | sed 's/^headtime: /server: /' || true
