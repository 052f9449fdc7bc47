#!/bin/sh
# Power failures under ext4: files that were synced are there afterwards, files that were not are lost or incomplete, and the
# file system is consistent after it has replayed its journal.
#
# usage: power-failure.sh [TIMES]                      (root, as on-slow-disk.sh; 3 times)
#
# Prints a line a failure. Exit status: 1 if a synced file is lost or the file system is damaged, or if no failure lost anything.
# In the environment: DRIVE, SIZE, SPEED (20), HEADTIME and TMPDIR as for on-slow-disk.sh; SEED of what is lost (1)
set -eu

headtime=${HEADTIME:-headtime}
times=${1:-3}
there=$(mktemp -d)
name=power-failure-$$
uri="nbd+unix:///?socket=$there/nbd.sock"
disk='' mounted='' attached=''

ended() {
    status=$?
    trap - EXIT
    cd /
    if [ -n "$mounted" ]; then umount "$there/mnt" || :; fi
    if [ -n "$attached" ]; then "$headtime" detach "$name" >&2 || :; fi
    if [ -n "$disk" ]; then kill "$disk" 2>/dev/null || :; wait "$disk" || :; fi
    if [ "$status" != 0 ]; then cat "$there/said" >&2; fi
    rm -rf "$there"
    exit "$status"
}
trap ended EXIT
trap 'exit 130' INT TERM
fault() { "$headtime" fault "$@" --control "$there/fault.sock" >/dev/null; }
attach() { device=$("$headtime" attach "$uri" --name "$name"); attached=1; }

# What is not flushed stays in the cache, as in a drive that has no time to write it.
"$headtime" disk "${DRIVE:-hitachi-7k1000c}" --backing "$there/drive/" --nbd "unix:$there/nbd.sock" --write-cache hold \
    --control "$there/fault.sock" --speed "${SPEED:-20}" --seed "${SEED:-1}" >/dev/null 2>"$there/said" &
disk=$!
while ! [ -S "$there/nbd.sock" ] || ! [ -S "$there/fault.sock" ]; do
    kill -0 "$disk" 2>/dev/null || exit 3
    sleep 0.1
done
attach
mkfs.ext4 -q -E nodiscard "$device" "${SIZE:-1G}" >&2
mkdir "$there/mnt"

lost_in_all=0
round=1
while [ "$round" -le "$times" ]; do
    mount "$device" "$there/mnt"
    mounted=1
    for n in 1 2 3; do
        dd if=/dev/urandom of="$there/synced-$round-$n" bs=64k count=1 status=none
        cp "$there/synced-$round-$n" "$there/mnt/"
        sync "$there/mnt/synced-$round-$n"
        # Written to the drive, which has acknowledged it, and not flushed.
        dd if=/dev/urandom of="$there/loose-$round-$n" bs=64k count=1 status=none
        dd if="$there/loose-$round-$n" of="$there/mnt/loose-$round-$n" bs=64k oflag=direct status=none
    done
    sync "$there/mnt"
    # Overwritten in place, past the cache of the kernel: not even the journal is flushed for it.
    dd if=/dev/urandom of="$there/loose-$round-0" bs=64k count=3 status=none
    for n in 1 2 3; do
        dd if="$there/loose-$round-0" of="$there/mnt/loose-$round-$n" skip=$((n - 1)) bs=64k count=1 \
            conv=notrunc oflag=direct status=none
    done
    fault add power-off
    # Its errors are those of a drive that is gone.
    umount "$there/mnt" 2>/dev/null || umount -l "$there/mnt"
    mounted=''
    fault clear
    "$headtime" detach "$name" >&2
    attached=''
    attach
    mount "$device" "$there/mnt"
    mounted=1
    lost=0
    for n in 1 2 3; do
        [ "$n" -gt "$round" ] || for file in "$there"/synced-"$n"-*; do
            cmp -s "$file" "$there/mnt/${file##*/}" || { echo "${file##*/} was synced, and is lost" >&2; exit 1; }
        done
        dd if="$there/loose-$round-0" bs=64k skip=$((n - 1)) count=1 status=none \
            | cmp -s - "$there/mnt/loose-$round-$n" || lost=$((lost + 1))
    done
    umount "$there/mnt"
    mounted=''
    e2fsck -fn "$device" >"$there/e2fsck" 2>&1 || { cat "$there/e2fsck" >&2; exit 1; }
    echo "failure $round: all synced files are there, $lost of 3 files that were not synced are damaged, e2fsck finds nothing"
    lost_in_all=$((lost_in_all + lost))
    round=$((round + 1))
done
[ "$lost_in_all" -gt 0 ] || { echo "nothing was lost, so nothing was tested" >&2; exit 1; }
