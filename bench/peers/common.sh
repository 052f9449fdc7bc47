# shellcheck shell=sh
# Variables are shared with run.sh.
# shellcheck disable=SC2034,SC2154
# Servers, block devices and loads of run.sh, which sources this. At most one server runs at a time.
#
# Read: $headtime, $here, $dir (a directory of this run), $drive (the virtual drive).
# Set: $parts (what applications open), $first (the first of these), $late and $readers.

# Programs that run beside the script, and what is attached. finish() ends them.
server=
child=
load=
attached=
# What a queue had before, as DEVICE:NUMBER.
resized=

say() { printf 'run.sh: %s\n' "$*" >&2; }

# What an interrupted run leaves is ended in this order: programs that use the devices, devices, the
# server.
finish() {
    for pid in $child $load; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    child=
    load=
    for was in $resized; do
        queue=/sys/block/${was%:*}/queue
        # When a scheduler is gone the kernel shows the default number again, although the queue
        # below still has another one, and ignores a number that it shows already. So a different
        # number is written first.
        echo none 2>/dev/null >"$queue/scheduler" || true
        for number in "$depth" "${was#*:}"; do echo "$number" 2>/dev/null >"$queue/nr_requests" || true; done
    done
    resized=
    for name in $attached; do "$headtime" detach "$name" >/dev/null 2>&1 || true; done
    attached=
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}

# The shell waits for what runs beside it, so that it handles signals at once.
beside() {
    "$@" &
    child=$!
    wait "$child" || { status=$?; child=; say "failed: $*"; return "$status"; }
    child=
}

# Starts a server: serve COMMAND...
serve() {
    rm -f "$dir/disk.img" "$dir/nbd.sock" "$dir/control.sock"
    # A scrub's journal is of one disk, and must not be continued on the next one.
    rm -rf "$dir/state"
    "$headtime" "$@" --json >"$dir/served" 2>"$dir/log" &
    server=$!
    listens "$dir/nbd.sock" "$server" "$dir/log" || exit 1
}

# attach NUMBER EXPORT: its block device in $device.
attach() {
    # Named first: if this is interrupted, there may be half an attachment.
    attached="$attached peers-$$-$1"
    device=$("$headtime" attach "$2" --socket "$dir/nbd.sock" --name "peers-$$-$1" 2>"$dir/attach.log") || {
        say "cannot attach: $(grep -v warning "$dir/attach.log" | tail -1)"
        exit 1
    }
}

# schedule SCHEDULER: the kernel's scheduler of $device, with as many commands below it as the drive
# takes.
schedule() {
    queue=/sys/block/${device#/dev/}/queue
    case " $(tr -d '[]' <"$queue/scheduler") " in
        *" $1 "*) ;;
        *) say "this kernel has no $1"; exit 1 ;;
    esac
    echo none >"$queue/scheduler"
    resized="$resized ${device#/dev/}:$(cat "$queue/nr_requests")"
    # Without a scheduler this resizes the queue of commands to the device, which stays as it is
    # under a scheduler; with one it would resize the scheduler's own. The least is 4.
    echo "$depth" >"$queue/nr_requests"
    below=$(cat "$queue/nr_requests")
    [ "$1" = none ] || echo "$1" >"$queue/scheduler"
    # A loop device states that nothing turns beneath it, and the schedulers use that.
    echo 1 >"$queue/rotational"
}

# queue_depth: commands that the drive takes, in $depth, and its size in GiB, in $gib.
queue_depth() {
    both=$("$headtime" profiles --json | python3 -c '
import json, sys
drives = {drive["name"]: drive for drive in json.load(sys.stdin)}
drive = drives.get(sys.argv[1]) or sys.exit(1)
print(drive["queue_depth"], drive["sectors"] * drive["sector_bytes"] >> 30)' "$drive") || return 1
    depth=${both% *}
    gib=${both#* }
}

# The disk in parts of 24 GiB: the program's is number 0, ten readers' are 1 to 10.
part=24

# kernel SCHEDULER [TRANSPORTS]: the drive without headtime's scheduler, under the kernel's.
kernel() {
    serve disk "$drive" --seed 1 --backing "$dir/disk.img" --nbd "unix:$dir/nbd.sock"
    parts=
    for i in $(seq 0 $((${2:-1} - 1))); do
        attach "$i" ""
        schedule "$1"
        parts="$parts $device"
    done
    # Every device is the whole disk.
    whole=1
    first=${parts# }
    first=${first%% *}
}

# ours EXPORTS [fifo]: headtime serve, with as many exports. With fifo it schedules nothing.
ours() {
    {
        printf '[disk]\ndrive = "%s"\nbacking = "disk.img"\nseed = 1\n' "$drive"
        if [ "${2:-}" = fifo ]; then
            printf '[scheduler]\nadmit = "none"\norder = "fcfs"\nfill = "none"\noutstanding = %s\n' "$depth"
        fi
        printf '[listen]\nnbd = ["unix:nbd.sock"]\ncontrol = "control.sock"\n'
        if [ "$1" = 1 ]; then
            printf '[[export]]\nname = "p0"\n'
        else
            for i in $(seq 0 $(($1 - 1))); do
                printf '[[export]]\nname = "p%s"\nstart = "%s GiB"\nsize = "%s GiB"\n' "$i" $((i * part)) $part
            done
        fi
    } >"$dir/serve.toml"
    serve serve "$dir/serve.toml"
    parts=
    for i in $(seq 0 $(($1 - 1))); do
        # This turns the kernel's scheduler off.
        attach "$i" "p$i"
        parts="$parts $device"
    done
    whole=0
    first=${parts# }
    first=${first%% *}
}

# begin WHO [1]: the server and devices of a row; with 1, one export of the whole disk for headtime.
begin() {
    case $1 in
        headtime) ours "${2:-11}" ;;
        fifo-11) ours 11 fifo ;;
        none-11) kernel none 11 ;;
        *) kernel "$1" ;;
    esac
}

# end: the server is gone, and $late is how late its completions were, p99 in ms.
end() {
    finish
    late=$(awk '/"lateness_us"/ { l = 1 } l && /"p99"/ { gsub(/[^0-9]/, "", $2); print $2 / 1000; exit }' "$dir/served")
    [ -n "$late" ] || {
        say "the server did not say how late it was:"
        tail -3 "$dir/log" >&2
        exit 1
    }
}

# settings WHO: a line on the queues of what is attached, for the table and for the report.
settings() {
    queue=/sys/block/${first#/dev/}/queue
    devices=$(echo "$parts" | wc -w)
    line="devices=$devices scheduler=$(sed 's/.*\[\(.*\)\].*/\1/' "$queue/scheduler")"
    case $1 in headtime | fifo-11) ;; *) line="$line commands_below=$below" ;; esac
    for name in nr_requests rotational read_ahead_kb max_sectors_kb; do line="$line $name=$(cat "$queue/$name")"; done
    [ "$1" != bfq ] ||
        for name in low_latency slice_idle; do line="$line $name=$(cat "$queue/iosched/$name")"; done
    echo "$line"
}

# Ten readers in order, until readers_end; each is a process of its own, as applications are.
readers_begin() {
    set --
    i=0
    for device in $parts $parts $parts $parts $parts $parts $parts $parts $parts $parts $parts; do
        at=0
        [ "$whole" = 0 ] || at=$((i * part))
        [ "$i" = 0 ] || set -- "$@" --name="r$i" --filename="$device" --offset="${at}g" --size=4g
        i=$((i + 1))
        [ "$i" -le 10 ] || break
    done
    fio --rw=read --bs=128k --direct=1 --ioengine=psync --time_based --runtime=86400 --output-format=json \
        --output="$dir/readers" "$@" >/dev/null 2>>"$dir/log" &
    load=$!
}

# readers_end: MB/s of all readers in $readers.
readers_end() {
    kill "$load" || { say "the readers ended early: $(tail -1 "$dir/log")"; exit 1; }
    # fio says with its status that a signal ended it.
    wait "$load" || true
    load=
    readers=$(python3 "$here/reads.py" total "$dir/readers")
}
