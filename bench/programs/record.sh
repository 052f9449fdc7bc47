#!/usr/bin/env bash
# Records what programs ask of a disk, with their pauses: find, grep -r, tar, cp -a, git clone, a compile and a database's commits, each with
# a cold cache, on ext4 and, where mkfs.xfs is there, xfs, over `headtime attach` on a 1 TB virtual drive in real time.
#
# usage: record.sh [OUT]      (root; OUT: a directory, ./recordings; QUICK=1: a small tree; more in common.sh)
#
# Writes OUT/FS-PROGRAM.rec, which `headtime simulate --trace FILE --trace-format recording` replays, and lists how long each took. Nothing is filled
# while it records. A machine that has other things to do makes the pauses longer: record on a quiet one.
set -euo pipefail
. "$(dirname "$0")/common.sh"

out=${1:-recordings}
check_machine
find_headtime
mkdir -p "$out"
out=$(cd "$out" && pwd)
begin
for fs in $systems; do
    image "$fs"
    for p in $programs; do
        file=$out/$fs-$p.rec
        rm -f "$file"
        # What comes before the program is not recorded: a server of its own.
        start serve none
        cold "$fs"; before "$p"; finish
        start serve none --record "$file"
        took_ms=$(mount -t "$fs" -o "$(mount_options "$fs")" "$device" "$mnt"; from=$(now_ns); program "$p"; to=$(now_ns); echo $(((to - from) / 1000000)))
        finish
        start serve none
        cold "$fs"; after "$p"; finish
        printf '%-5s %-8s %8d ms  %s\n' "$fs" "$p" "$took_ms" "$(tail -1 "$file" | sed 's/end //') requests"
    done
done
