# What record.sh and run.sh share: a virtual drive with a file system on it, a tree of small files, and the programs. Sourced by bash.
#
# The environment: QUICK=1 (a small tree), DRIVE (hitachi-7k1000c), FILES and FS (ext4, or "ext4 xfs" where mkfs.xfs is there), PROGRAMS (all
# seven), HEADTIME (the program, otherwise built).

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
drive=${DRIVE:-hitachi-7k1000c}
# Sizes are 1 to 31 KiB, 16 KiB in the mean: 39,000 files are about 634 MB.
files=${FILES:-$([ -n "${QUICK:-}" ] && echo 1500 || echo 39000)}
systems=${FS:-$(command -v mkfs.xfs >/dev/null && echo "ext4 xfs" || echo ext4)}
programs=${PROGRAMS:-find grep tar cp clone compile commits}
commits=$([ -n "${QUICK:-}" ] && echo 40 || echo 200)
units=$([ -n "${QUICK:-}" ] && echo 12 || echo 120)

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 2; }

# What this machine needs for it, with the reason where it is not there.
check_machine() {
    local missing=()
    [ "$(id -u)" = 0 ] || missing+=("root (file systems are mounted)")
    [ -e /dev/loop-control ] || missing+=("loop devices (/dev/loop-control)")
    for fs in $systems; do command -v "mkfs.$fs" >/dev/null || missing+=("mkfs.$fs"); done
    if ! command -v nbd-client >/dev/null || [ ! -e /dev/nbd0 ]; then
        { command -v nbdfuse && command -v fusermount3 && [ -e /dev/fuse ]; } >/dev/null || missing+=("nbd-client and /dev/nbd0, or nbdfuse (libnbd-bin), fusermount3 (fuse3) and /dev/fuse")
    fi
    [ ${#missing[@]} = 0 ] || { for m in "${missing[@]}"; do say "skipped: this machine lacks $m"; done; exit 0; }
    local kept=
    for p in $programs; do
        case $p in
            clone) command -v git >/dev/null || { say "skipped: clone: no git"; continue; } ;;
            compile) { command -v cc && command -v make; } >/dev/null || { say "skipped: compile: no cc or no make"; continue; } ;;
            commits) command -v sqlite3 >/dev/null || { say "skipped: commits: no sqlite3"; continue; } ;;
            find | grep | tar | cp) ;;
            *) die "PROGRAMS: expected find, grep, tar, cp, clone, compile, commits, found $p" ;;
        esac
        kept="$kept $p"
    done
    programs=$kept
}

find_headtime() {
    headtime=${HEADTIME:-${CARGO_TARGET_DIR:-$here/../../target}/release/headtime}
    [ -n "${HEADTIME:-}" ] || cargo build --manifest-path "$here/../../Cargo.toml" --release --locked --quiet -p headtime
    [ -x "$headtime" ] || die "HEADTIME: expected the program, found nothing that can be run at $headtime"
}

# A directory of its own; everything in it goes at the end, and what was attached and mounted before that.
server= reader= scrub= device=
begin() {
    dir=$(mktemp -d "${TMPDIR:-/var/tmp}/programs.XXXXXX")
    mnt=$dir/mnt
    mkdir "$mnt"
    export XDG_STATE_HOME="$dir/state"
    trap 'finish; rm -rf "$dir"' EXIT
    trap 'exit 130' INT TERM
}
stop_reader() { [ -z "$reader" ] || { kill "$reader" 2>/dev/null || true; wait "$reader" 2>/dev/null || true; reader=; }; return 0; }
stop_scrub() { [ -z "$scrub" ] || { kill -TERM "$scrub" 2>/dev/null || true; wait "$scrub" 2>/dev/null || true; scrub=; }; return 0; }
unmounted() { mountpoint -q "$mnt" || return 0; for _ in $(seq 20); do umount "$mnt" && return 0; sleep 0.2; done; return 1; }
finish() {
    stop_reader
    stop_scrub
    unmounted || true
    [ -z "$device" ] || "$headtime" detach "$device" >/dev/null 2>&1 || true
    device=
    [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
    server=
}

# config FILL: what the server reads.
config() {
    cat >"$dir/serve.toml" <<TOML
[disk]
drive = "$drive"
backing = "disk.img"
[scheduler]
fill = "$1"
[listen]
nbd = ["unix:nbd.sock"]
control = "control.sock"
metrics = "127.0.0.1:0"
[[export]]
name = "disk"
TOML
}

# start serve FILL [FLAGS...], or start disk: a server and its block device.
start() {
    local kind=$1
    # What the last server said must not be taken for this one's.
    rm -f "$dir/nbd.sock" "$dir/control.sock" "$dir/log"
    if [ "$kind" = serve ]; then
        config "$2"
        # A virtual drive that is late measures the machine: other programs must not keep it waiting.
        nice -n -20 "$headtime" serve "$dir/serve.toml" --json "${@:3}" >"$dir/served.json" 2>"$dir/log" &
    else
        nice -n -20 "$headtime" disk "$drive" --backing "$dir/disk.img" --nbd "unix:$dir/nbd.sock" >"$dir/served.json" 2>"$dir/log" &
    fi
    server=$!
    for _ in $(seq 300); do
        grep -qs 'clients: ' "$dir/log" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    grep -qs 'clients: ' "$dir/log" || { tail -3 "$dir/log" >&2; die "the server does not listen"; }
    local export=disk
    [ "$kind" = serve ] || export=
    device=$("$headtime" attach "$export" --socket "$dir/nbd.sock" --name "programs-$$" 2>"$dir/attach.log") || { cat "$dir/attach.log" >&2; die "cannot attach"; }
}

# Work that ext4 does by itself some seconds after a mount would be measured with the program or not, by chance. It
# fills inode tables, and since Linux 5.13 reads block bitmaps in advance (466 reads on 1 TB: `find` takes 2 or 5 s).
quiet_ext4=noinit_itable
printf '5.13\n%s\n' "$(uname -r)" | sort -CV && quiet_ext4=$quiet_ext4,no_prefetch_block_bitmaps
mount_options() { case $1 in ext4) echo "noatime,$quiet_ext4" ;; *) echo noatime ;; esac; }

# cold FS: nothing of the file system is in memory. The device under it keeps nothing either: it is opened with direct I/O.
cold() { unmounted || die "$mnt cannot be unmounted"; mount -t "$1" -o "$(mount_options "$1")" "$device" "$mnt"; }

# image FS: a file system with the tree, made at the host's speed on the drive's backing file.
image() {
    local fs=$1 loop
    rm -f "$dir/disk.img"
    say "$fs: $files files"
    # The server makes the backing file as long as the drive.
    config none
    rm -f "$dir/log"
    "$headtime" serve "$dir/serve.toml" >/dev/null 2>"$dir/log" &
    server=$!
    for _ in $(seq 300); do grep -qs 'clients: ' "$dir/log" && break; sleep 0.1; done
    kill "$server"; wait "$server" || true
    server=
    loop=$(losetup --find --show "$dir/disk.img")
    case $fs in
        ext4) mkfs.ext4 -q -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 "$loop" ;;
        xfs) mkfs.xfs -q -K "$loop" ;;
    esac
    mount -t "$fs" -o "$(mount_options "$fs")" "$loop" "$mnt"
    tree
    umount "$mnt"
    losetup --detach "$loop"
}

# The same tree on every machine: text of random words, C sources that include each other, a repository of those.
tree() {
    awk -v root="$mnt/tree" -v files="$files" 'BEGIN {
        srand(7)
        for (i = 0; i < 4096; i++) { w = ""; for (j = 0; j < 10; j++) w = w sprintf("%c%c%c%c%c ", 97 + rand() * 26, 97 + rand() * 26, 97 + rand() * 26, 97 + rand() * 26, 97 + rand() * 26); line[i] = w }
        a = 12; b = int(files / a / 30) + 1
        for (i = 0; i < a; i++) for (j = 0; j < b; j++) system("mkdir -p " root "/d" i "/s" j)
        for (n = 0; n < files; n++) {
            f = root "/d" (n % a) "/s" (int(n / a) % b) "/f" n ".txt"
            lines = 17 + int(rand() * 500)
            for (l = 0; l < lines; l++) print line[int(rand() * 4096)] > f
            close(f)
        }
    }'
    mkdir "$mnt/src"
    awk -v root="$mnt/src" -v units="$units" 'BEGIN {
        for (u = 0; u < units; u++) {
            h = root "/h" u ".h"; c = root "/u" u ".c"
            printf "#ifndef H%d\n#define H%d\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n", u, u > h
            for (f = 0; f < 40; f++) printf "int f%d_%d(int x);\n", u, f > h
            print "#endif" > h; close(h)
            for (i = 0; i < 8; i++) printf "#include \"h%d.h\"\n", (u + i * 7) % units > c
            for (f = 0; f < 40; f++) printf "int f%d_%d(int x) { int s = 0; for (int i = 0; i < x; i++) s += (i * %d) ^ x; return s; }\n", u, f, f + 3 > c
            close(c)
        }
        m = root "/Makefile"; printf "all:" > m
        for (u = 0; u < units; u++) printf " u%d.o", u > m
        printf "\n%%.o: %%.c\n\tcc -O1 -c -o $@ $<\n" > m; close(m)
    }'
    if command -v git >/dev/null; then
        git init -q "$mnt/repo"
        cp -r "$mnt/src" "$mnt/tree/d0" "$mnt/repo/"
        git -C "$mnt/repo" add .
        git -C "$mnt/repo" -c user.name=a -c user.email=a@b commit -qm tree
    fi
}

# program NAME: runs it to the end of what it writes.
program() {
    case $1 in
        find) find "$mnt/tree" -type f -newermt 2040-01-01 ;;
        grep) grep -r 'no such word here' "$mnt/tree" || [ $? = 1 ] ;;
        # Without the pipe tar sees /dev/null and reads nothing.
        tar) tar -C "$mnt" -cf - tree | cat ;;
        cp) cp -a "$mnt/tree/d1" "$mnt/tree/d2" "$mnt/out" && sync -f "$mnt" ;;
        clone) git clone -q --no-hardlinks --no-local "$mnt/repo" "$mnt/out/repo" && sync -f "$mnt" ;;
        compile) make -s -j2 -C "$mnt/src" && sync -f "$mnt" ;;
        commits) for n in $(seq "$commits"); do echo "insert into t values ($n, randomblob(200));"; done | sqlite3 -cmd 'pragma synchronous=full' "$mnt/out/db" ;;
    esac >/dev/null
}
# before NAME, and after NAME: what is not measured.
before() {
    mkdir -p "$mnt/out"
    [ "$1" != commits ] || sqlite3 "$mnt/out/db" 'create table t (n integer primary key, b blob)'
}
after() { rm -rf "$mnt/out" "$mnt"/src/*.o; }

now_ns() { date +%s%N; }
