#!/bin/sh
# headtime beside the kernel's own schedulers, on the same virtual drive in real time, in one run.
#
# A drive is served over NBD and attached as a block device (`headtime attach`: the kernel's NBD
# client, or nbdfuse and a loop device). All programs read block devices with direct I/O: the drive
# itself under one of the kernel's schedulers (`headtime disk`), or exports of `headtime serve`.
# Drive, seed and ranges are the same.
#
# * Start-up: a recorded start of a program on the idle disk, and while ten readers run. The
#   kernel's schedulers know processes, `headtime serve` knows exports. So headtime has eleven block
#   devices, one for each application, and the kernel has one. A scheduler of the kernel schedules
#   one device. What could join eleven devices below it (device-mapper, md) is missing in many
#   kernels, and an NBD server that joins them would be one more hop for the kernel alone. Two more
#   rows show what the devices cost; neither has a scheduler. none-11 is the kernel's none with
#   eleven devices of the same drive, fifo-11 is `headtime serve` with eleven exports in order of
#   arrival. Compare none with none-11 for the cost of the devices, and none-11 with fifo-11 for
#   that of the server. The readers' rate is that of all the time that they run, the start included:
#   the seconds of --seconds, or longer if the start takes longer.
# * Random reads, alone and beside a read of the whole disk. Both sides have one device. The whole
#   disk is read by `headtime scrub`, or by dd in the idle class or in the usual one, each as fast
#   as it gets; then by fio at the rate that headtime's scrub had, in the idle class and in the
#   best-effort class; and by headtime's scrub, paused and resumed, at the rate of the faster one of
#   the kernel's idle classes. (kyber and none have no idle class.) A scrub's rate is that at its
#   beginning, when everything is left to be read.
#
# The device below the kernel's scheduler takes as many commands as the drive, but at least 4, the
# kernel's minimum. The last column is how late completions of the virtual drive were (p99): on a
# busy machine the drive itself is late. Ratios leave such repetitions out; report.py has the limit.
# Names of files are taken as they are.
set -euf

usage() {
    cat <<'TEXT'
usage: run.sh [--seconds N] [--repetitions N] [--trace FILE]... [--depths "N..."] [--quick] [--json FILE]

Compares headtime with the kernel's bfq, mq-deadline, kyber and none on a virtual drive in real time. Root only.
With the defaults the random reads take four and a half hours, and each trace half an hour.

  --seconds N        of each measurement [30]; a start-up takes longer if the start does
  --repetitions N    [5]
  --trace FILE       a recorded start of a program, in columns as in the S benchmark suite; may be given several times;
                     without it the start-ups are left out
  --depths "N..."    random reads under way ["1 2 4 8 16"]
  --quick            the smallest run that has every line: 3 s each, once, depth 4
  --json FILE        writes settings, figures and ratios; an existing file is replaced at the end

In the environment:
  HEADTIME   the program [target/release/headtime of this source tree]
  DRIVE      the virtual drive [hitachi-7k1000c, which has a command queue], one or several of `headtime profiles`,
             of at least 280 GiB each
  TMPDIR     where the backing file is
TEXT
}

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=bench/listens.sh
. "$here/../listens.sh"
# shellcheck source=bench/peers/common.sh
. "$here/common.sh"

refuse() { say "$*; --help lists the flags"; exit 2; }
# number FLAG VALUE LEAST: VALUE is a whole number.
number() {
    case $2 in '' | 0* | *[!0-9]* | ???????*) refuse "$1: expected a whole number from $3 to 999999, found '$2'" ;; esac
    [ "$2" -ge "$3" ] || refuse "$1: expected a whole number from $3 to 999999, found $2"
}

# distinct FLAG VALUE...: figures of two equal ones could not be told apart.
distinct() {
    flag=$1
    shift
    twice=$(printf '%s\n' "$@" | sort | uniq -d | head -1)
    [ -z "$twice" ] || refuse "$flag: expected different ones, found $twice twice"
}

seconds='' repetitions='' depths='' quick='' json='' traces='' names=''
tab=$(printf '\t')
newline='
'
while [ $# -gt 0 ]; do
    case $1 in
        --seconds | --repetitions | --trace | --depths | --json) [ $# -ge 2 ] || refuse "$1: expected a value" ;;
    esac
    case $1 in
        --seconds) number "$1" "$2" 3; seconds=$2; shift ;;
        --repetitions) number "$1" "$2" 1; repetitions=$2; shift ;;
        --trace)
            [ -r "$2" ] || refuse "--trace: cannot read $2"
            traces="$traces$2$newline" names="$names$(basename "$2" .trace)$newline"
            shift
            ;;
        --depths)
            depths=$2
            case $2 in *[!\ ]*) ;; *) refuse "$1: expected whole numbers, found none" ;; esac
            for n in $2; do number "$1" "$n" 1; done
            shift
            ;;
        --json) json=$2; [ -n "$json" ] || refuse "--json: expected a file"; shift ;;
        --quick) quick=1 ;;
        -h | --help) usage; exit 0 ;;
        *) refuse "expected a flag, found '$1'" ;;
    esac
    shift
done
seconds=${seconds:-$([ -n "$quick" ] && echo 3 || echo 30)}
repetitions=${repetitions:-$([ -n "$quick" ] && echo 1 || echo 5)}
depths=${depths:-$([ -n "$quick" ] && echo 4 || echo "1 2 4 8 16")}
# The start begins when the readers have run for this long: then none of them counts as new any
# more.
warm=$([ -n "$quick" ] && echo 2 || echo 12)
[ -z "$traces" ] || [ "$seconds" -gt "$warm" ] ||
    refuse "--seconds: expected more than $warm with a trace, found $seconds"
drives=${DRIVE:-hitachi-7k1000c}
[ -n "$(echo $drives)" ] || refuse "DRIVE: expected names of 'headtime profiles', found none"
# shellcheck disable=SC2086
distinct --depths $depths
# shellcheck disable=SC2086
distinct DRIVE $drives

for tool in fio python3 losetup ionice dd awk; do
    command -v "$tool" >/dev/null || { say "needs $tool"; exit 1; }
done
command -v nbdfuse >/dev/null || command -v nbd-client >/dev/null || { say "needs nbdfuse or nbd-client"; exit 1; }
headtime=${HEADTIME:-$here/../../target/release/headtime}
if [ ! -f "$headtime" ] || [ ! -x "$headtime" ]; then
    say "no program $headtime: build it with 'cargo build --release', or set HEADTIME"
    exit 1
fi
if [ -n "$json" ]; then
    into=$(dirname "$json")
    # A device would be replaced by a file.
    if [ -e "$json" ] && [ ! -f "$json" ]; then refuse "--json: expected a file, found something else at $json"; fi
    tried=$(mktemp -p "$into" 2>/dev/null) || refuse "--json: cannot write into $into"
    rm "$tried"
fi
for drive in $drives; do
    queue_depth 2>/dev/null || refuse "DRIVE: expected names of 'headtime profiles', found '$drive'"
    [ "$gib" -ge 280 ] || refuse "DRIVE: expected drives of at least 280 GiB, found $drive with $gib"
done
old=$IFS
IFS=$newline
# shellcheck disable=SC2086
distinct "--trace: names" $names
for trace in $traces; do
    python3 "$here/start.py" "$trace" --check || exit 2
done
IFS=$old
[ "$(id -u)" = 0 ] || { say "needs to be root: it attaches block devices"; exit 1; }

dir=$(mktemp -d)
kept=
export XDG_STATE_HOME="$dir/state"
# Further signals must not interrupt what puts everything back.
trap 'trap "" INT TERM HUP QUIT PIPE; finish; [ -n "$kept" ] || rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 131' QUIT
trap 'exit 141' PIPE
trap 'exit 143' TERM HUP

# note KIND FIELD...: a line for the report.
note() {
    kind=$1
    shift
    { printf '%s' "$kind"; printf '\t%s' "$@"; echo; } >>"$dir/notes"
}

# turned N NAME...: the names, each repetition beginning with another, so that none is always the
# first.
turned() {
    n=$(($1 - 1))
    shift
    while [ "$n" -gt 0 ]; do
        turn=$1
        shift
        set -- "$@" "$turn"
        n=$((n - 1))
    done
    echo "$@"
}

# start_up TRACE: all rows of a start of a program.
start_up() {
    program=$(basename "$1" .trace)
    echo "repetition $repetition: $drive, start of $program"
    printf '  %-14s %10s %10s %14s %10s\n' "" "idle, s" "loaded, s" "readers, MB/s" "late, ms"
    for who in $(turned "$repetition" bfq mq-deadline kyber none none-11 fifo-11 headtime); do
        begin "$who"
        beside python3 "$here/start.py" "$1" "$first" >"$dir/idle"
        readers_begin
        beside sleep "$warm"
        began=$(date +%s)
        beside python3 "$here/start.py" "$1" "$first" >"$dir/loaded"
        left=$((seconds - warm - $(date +%s) + began))
        [ "$left" -le 0 ] || beside sleep "$left"
        readers_end
        end
        printf '  %-14s %10s %10s %14s %10s\n' "$who" "$(cat "$dir/idle")" "$(cat "$dir/loaded")" "$readers" "$late"
        note figures "repetition=$repetition" test=start-up "drive=$drive" "trace=$program" "scheduler=$who" \
            "idle_s=$(cat "$dir/idle")" "loaded_s=$(cat "$dir/loaded")" "readers_mb_s=$readers" "late_p99_ms=$late"
    done
}

# random_reads SCRUB [RATE]: a row of random reads for each; the server's lateness is known when it
# has ended.
random_reads() {
    beside python3 "$here/reads.py" random --device "$first" --depth "$iodepth" --seconds "$seconds" --dir "$dir" \
        --scrub "$1" ${2:+--rate "$2"} --headtime "$headtime" --control "$dir/control.sock" >"$dir/row"
    case $1 in headtime) label=$1${2:+-rate} ;; *) label=$1 ;; esac
    printf '%s\t%s\n' "$label" "$(cat "$dir/row")" >>"$dir/rows"
}

# rows_end: the server ends, and its rows are printed.
rows_end() {
    end
    while IFS= read -r row; do
        scrub=${row%%"$tab"*}
        row=${row#*"$tab"}
        echo "$row" | tr '\t' '\n' | awk -F= -v who="$who" -v scrub="$scrub" -v late="$late" '{ f[$1] = $2 } END {
            printf "  %-14s %-20s %9.1f %9.2f %9.1f %9s %10s\n",
                who, scrub, f["reads_per_s"], f["mean_ms"], f["p99_ms"],
                f["scrub_mb_s"] == "" ? "-" : sprintf("%.2f", f["scrub_mb_s"]), late }'
        note figures "repetition=$repetition" test=reads "drive=$drive" "depth=$iodepth" "scheduler=$who" \
            "scrub=$scrub" "$row" "late_p99_ms=$late"
    done <"$dir/rows"
    rm "$dir/rows"
}

# rate_of SCRUB: the highest rate of this repetition's rows with that scrub, in MB/s, at least 0.1.
rate_of() {
    grep -F "repetition=$repetition${tab}test=reads${tab}drive=$drive${tab}depth=$iodepth$tab" "$dir/notes" |
        grep -F "${tab}scrub=$1$tab" | tr '\t' '\n' |
        awk -F= '$1 == "scrub_mb_s" && $2 > most { most = $2 }
                 END { if (most < 0.1) most = 0.1; printf "%.3f\n", most }'
}

# beside_scrubs: all rows of random reads at $iodepth.
beside_scrubs() {
    echo "repetition $repetition: $drive, $iodepth random reads under way"
    printf '  %-14s %-20s %9s %9s %9s %9s %10s\n' "" "whole disk read by" "reads/s" "mean ms" "p99 ms" "MB/s" "late, ms"
    for who in $(turned "$repetition" bfq mq-deadline kyber none headtime); do
        begin "$who" 1
        random_reads none
        case $who in
            headtime) random_reads headtime ;;
            bfq | mq-deadline) random_reads idle; random_reads dd ;;
            *) random_reads dd ;;
        esac
        rows_end
    done
    ours_had=$(rate_of headtime)
    theirs_had=$(rate_of idle)
    echo "  at equal rates: the kernel's at $ours_had MB/s, headtime's at $theirs_had MB/s"
    for who in $(turned "$repetition" bfq mq-deadline kyber none headtime); do
        begin "$who" 1
        case $who in
            headtime) random_reads headtime "$theirs_had" ;;
            bfq | mq-deadline) random_reads idle-rate "$ours_had"; random_reads best-effort-rate "$ours_had" ;;
            *) random_reads best-effort-rate "$ours_had" ;;
        esac
        rows_end
    done
}

for pair in "headtime=$("$headtime" --version)" "fio=$(fio --version)" "seconds=$seconds" "warm_seconds=$warm" \
    "repetitions=$repetitions" "depths=$depths" "drives=$drives"; do
    note setting "$pair"
done

# Everything that is needed is tried once before anything is measured.
for drive in $drives; do
    queue_depth
    echo "$drive: takes $depth command(s) at a time; $seconds s each, $repetitions time(s)"
    note setting "$drive.commands=$depth"
    for who in bfq mq-deadline kyber none none-11 fifo-11 headtime; do
        begin "$who"
        line=$(settings "$who")
        echo "  $who: $line"
        note setting "$drive.$who=$line"
        end
    done
done
[ -n "$traces" ] || echo "no --trace: start-ups are left out"

for repetition in $(seq "$repetitions"); do
    for drive in $drives; do
        queue_depth
        IFS=$newline
        for trace in $traces; do
            IFS=$old
            start_up "$trace"
        done
        IFS=$old
        for iodepth in $depths; do beside_scrubs; done
    done
done
set -- "$dir/notes"
[ -z "$json" ] || set -- "$@" --json "$json"
python3 "$here/report.py" "$@" || {
    kept=1
    say "the measurements are kept in $dir/notes"
    exit 1
}
