#!/bin/sh
# headtime beside the kernel's own schedulers, on the same virtual drive in real time, in one run.
#
# usage: run.sh [SECONDS [REPETITIONS [TRACE]]]      (as root; needs fio, perl, nbdfuse, loop devices)
#
# Both ways the drive is behind nbdfuse and a loop device (`headtime attach`), and fio reads that with direct I/O: one block
# device under each of the kernel's schedulers, or one for each application, with the kernel's scheduler off and BFQ+ in
# `headtime serve`. Same drive, same seed, same ranges.
#
# * start-up: a recorded start of a program (TRACE; columns as in the S benchmark suite) while ten readers run     (claim X7)
# * scrub: random reads, alone and beside a read of the whole disk in the idle class, or `headtime scrub`          (claim X6)
set -eu

seconds=${1:-30}
repetitions=${2:-3}
trace=${3:-}
headtime=${HEADTIME:-$(dirname "$0")/../../target/release/headtime}
# The drive of the report, and one that takes more than one command, without which there are no gaps to be filled.
drive=${DRIVE:-maxtor-stm332061}
scrubbed=${SCRUBBED:-hitachi-7k1000c}

# The start begins when the readers have run for this long, and must end before they do.
warm=12
[ -z "$trace" ] || [ "$seconds" -ge $((warm + 12)) ] || { echo "run.sh: SECONDS: expected $((warm + 12)) or more with a trace, found $seconds" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "run.sh: needs to be root: it attaches block devices" >&2; exit 1; }
for tool in fio perl nbdfuse losetup; do
    command -v $tool >/dev/null || { echo "run.sh: needs $tool" >&2; exit 1; }
done
[ -x "$headtime" ] || { echo "run.sh: no $headtime: make it with 'cargo build --release', or say where it is with HEADTIME" >&2; exit 1; }

dir=$(mktemp -d)
# What a scrub has done of one disk is nothing to the next one.
export XDG_STATE_HOME="$dir/state"
server=
attached=
finish() {
    for name in $attached; do "$headtime" detach "$name" >/dev/null 2>&1 || true; done
    attached=
    if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; server=; fi
}
trap 'finish; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# The disk in twelve parts of 24 GiB: programs, ten readers' files, and one more.
part=24

# attach NAME EXPORT: its block device in $device.
attach() {
    device=$("$headtime" attach "$2" --socket "$dir/nbd.sock" --name "$1" 2>>"$dir/log")
    attached="$attached $1"
    case $(cat "/sys/block/${device#/dev/}/queue/scheduler") in *"$3"*) ;; *) echo "run.sh: this kernel has no $3" >&2; return 1 ;; esac
    echo "$3" >"/sys/block/${device#/dev/}/queue/scheduler"
    # A loop device says that nothing turns beneath it, and the schedulers go by that.
    echo 1 >"/sys/block/${device#/dev/}/queue/rotational"
    # What is asked for is what is read.
    echo 0 >"/sys/block/${device#/dev/}/queue/read_ahead_kb"
}

# A drive alone, under the kernel's scheduler $1: what every application opens.
kernel() {
    rm -f "$dir/disk.img"
    "$headtime" disk "$drive" --backing "$dir/disk.img" --nbd "unix:$dir/nbd.sock" 2>>"$dir/log" &
    server=$!
    listening
    attach peers-disk "" "$1"
    whole=$device
    program="--filename=$device --offset=0"
    reader() { echo "--filename=$whole --offset=$(($1 * part))g"; }
}

# headtime serve, an export for each application; $1: parts | whole.
ours() {
    rm -f "$dir/disk.img"
    {
        printf '[disk]\ndrive = "%s"\nbacking = "disk.img"\n[scheduler]\nadmit = "bfq+"\n' "$drive"
        printf '[listen]\nnbd = ["unix:nbd.sock"]\ncontrol = "control.sock"\n'
        if [ "$1" = whole ]; then
            printf '[[export]]\nname = "p0"\n'
        else
            for i in 0 1 2 3 4 5 6 7 8 9 10; do
                printf '[[export]]\nname = "p%s"\nstart = "%s GiB"\nsize = "%s GiB"\n' $i $((i * part)) $part
            done
        fi
    } >"$dir/serve.toml"
    "$headtime" serve "$dir/serve.toml" 2>>"$dir/log" &
    server=$!
    listening
    attach peers-0 p0 none
    whole=$device
    program="--filename=$device --offset=0"
    if [ "$1" = parts ]; then
        for i in 1 2 3 4 5 6 7 8 9 10; do
            attach peers-$i p$i none
            eval "device_$i=$device"
        done
    fi
    reader() { eval "echo --filename=\$device_$1 --offset=0"; }
}

# The start reads through the page cache, which must not have it from the last time.
forget() { sync; echo 1 >/proc/sys/vm/drop_caches; }

listening() {
    for _ in $(seq 100); do [ -S "$dir/nbd.sock" ] && return; sleep 0.1; done
    echo "run.sh: the server does not listen:" >&2; tail -3 "$dir/log" >&2; exit 1
}

# Ten readers in order for $1 seconds; MB/s of all in $dir/readers.
readers() {
    jobs=
    for i in 1 2 3 4 5 6 7 8 9 10; do jobs="$jobs --name=r$i $(reader $i) --size=4g"; done
    # Each job is a process of its own, as applications are.
    fio --rw=read --bs=128k --direct=1 --ioengine=psync --time_based --runtime="$1" --group_reporting \
        --output-format=terse --terse-version=3 $jobs 2>>"$dir/log" |
        awk -F';' '/^3;/ { sum += $7 } END { printf "%.1f\n", sum / 1000 }' >"$dir/readers"
}

# Seconds that the recorded start takes, read by one process. What passed beyond 20 ms between two reads is thought; less may have been
# the disk. Places are folded into the part of the disk where programs lie, distances within it as they were.
start() {
    perl -MTime::HiRes=sleep,time -e '
        my ($trace, $device) = @ARGV;
        open(my $log, "<", $trace) or die "$trace: $!";
        my @reads;
        while (<$log>) {
            my @f = split;
            next unless @f >= 9 && $f[2] =~ /^\d+$/ && $f[3] =~ /^\d+$/;
            my $think = $f[1] =~ /^[0-9.]+$/ ? $f[1] - 0.020 : 0;
            my ($at, $bytes) = ($f[3] % 46000000 * 512, $f[2] * 512);
            my $last = $reads[-1];
            if ($last && $last->[0] + $last->[1] == $at && $last->[1] + $bytes <= 131072) { $last->[1] += $bytes; next }
            push @reads, [$at, $bytes, $think];
        }
        open(my $disk, "<:raw", $device) or die "$device: $!";
        my ($began, $data) = time;
        for (@reads) {
            my ($at, $bytes, $think) = @$_;
            sleep($think) if $think > 0;
            sysseek($disk, $at, 0) and sysread($disk, $data, $bytes) == $bytes or die "$device at $at: $!";
        }
        printf "%.2f\n", time - $began;
    ' "$trace" "$whole"
}

# Random reads for $1 seconds: per second, and the 99th percentile in ms.
random_reads() {
    fio --name=random --filename="$whole" --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=4 --time_based \
        --runtime="$1" --size=280g --randseed=7 --norandommap --output-format=json 2>>"$dir/log" |
        awk '/"iops" :/ && !n { gsub(/[^0-9.]/, "", $3); n = $3 } /"99.000000"/ && !p { gsub(/[^0-9]/, "", $3); p = $3 }
             END { printf "%.0f %.0f\n", n, p / 1e6 }'
}

# turned N NAME...: the names, each repetition beginning with another, so that none is always the first.
turned() {
    n=$(($1 - 1)); shift
    while [ $n -gt 0 ]; do first=$1; shift; set -- "$@" "$first"; n=$((n - 1)); done
    echo "$@"
}

echo "$drive, $seconds s each"
for repetition in $(seq "$repetitions"); do
    if [ -n "$trace" ]; then
        echo "repetition $repetition: start of $(basename "$trace" .trace)"
        printf '  %-14s %10s %10s %14s\n' "" "idle, s" "loaded, s" "readers, MB/s"
        for who in $(turned $repetition bfq mq-deadline kyber none headtime); do
            case $who in headtime) ours parts ;; *) kernel $who ;; esac
            idle=$(start)
            forget
            readers "$seconds" &
            load=$!
            sleep $warm
            loaded=$(start)
            wait $load
            printf '  %-14s %10s %10s %14s\n' "$who" "$idle" "$loaded" "$(cat "$dir/readers")"
            finish
        done
    fi
    echo "repetition $repetition: $scrubbed, random reads, 4 under way, beside a scrub"
    drive_before=$drive
    drive=$scrubbed
    printf '  %-14s %10s %10s %10s %10s %12s\n' "" "alone /s" "p99 ms" "with /s" "p99 ms" "scrub MB/s"
    for who in $(turned $repetition bfq mq-deadline headtime); do
        case $who in headtime) ours whole ;; *) kernel $who ;; esac
        alone=$(random_reads "$seconds")
        if [ $who = headtime ]; then
            "$headtime" scrub --control "$dir/control.sock" --json >"$dir/scrub" 2>>"$dir/log" &
        else
            ionice -c3 dd if="$whole" of=/dev/null bs=1M iflag=direct 2>/dev/null &
        fi
        scrub=$!
        with=$(random_reads "$seconds")
        # What dd has read so far the kernel knows; a background job of a script hears no SIGINT.
        rate=$(awk '/^read_bytes/ { print $2 }' "/proc/$scrub/io" 2>/dev/null || true)
        if [ $who = headtime ]; then kill -INT $scrub; else kill $scrub; fi
        wait $scrub 2>/dev/null || true
        if [ $who = headtime ]; then
            rate=$(awk '/"bytes"/ { gsub(/[^0-9]/, "", $2); print $2; exit }' "$dir/scrub")
        fi
        printf '  %-14s %10s %10s %10s %10s %12s\n' $who $alone $with "$(awk -v b="${rate:-0}" -v s="$seconds" 'BEGIN { printf "%.1f", b / s / 1e6 }')"
        finish
    done
    drive=$drive_before
done
