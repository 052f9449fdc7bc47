#!/bin/sh
# Runs a command on an ext4 file system on a virtual drive: `headtime disk`, attached with `headtime attach`.
#
# usage: on-slow-disk.sh COMMAND [ARGUMENT...]          (root, with /dev/fuse and loop devices, or the kernel's NBD client)
#
# The command runs in the root directory of the empty file system. HEADTIME_FAULTS in its environment is the drive's control
# socket, for `headtime fault add ... --control "$HEADTIME_FAULTS"`.
#
# Exit status: the command's; if that is 0, 1 where this machine was too slow for the times to be the drive's, and 3 where the
# drive or the file system failed.
#
# In the environment:
#   DRIVE          hitachi-7k1000c, or another one of `headtime profiles`
#   SIZE           size of the file system, as mkfs.ext4 takes it: 4G
#   SPEED          times as fast as the real drive: 1
#   FAULTS         a file of faults (docs/test-disk.md): none
#   MAX_LATENESS   the lateness up to which a run is valid: 100ms
#   HEADTIME       the program: headtime
#   TMPDIR         where the drive's data is: sparse files of what is written
set -eu

[ $# -gt 0 ] || { echo "usage: on-slow-disk.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
headtime=${HEADTIME:-headtime}
there=$(mktemp -d)
name=slow-disk-$$
uri="nbd+unix:///?socket=$there/nbd.sock"
disk='' mounted='' attached=''

ended() {
    status=$?
    trap - EXIT
    cd /
    if [ -n "$mounted" ] && ! umount "$there/mnt"; then [ "$status" != 0 ] || status=3; fi
    if [ -n "$attached" ] && ! "$headtime" detach "$name" >&2; then [ "$status" != 0 ] || status=3; fi
    if [ -n "$disk" ]; then
        kill "$disk" 2>/dev/null || :
        late=0
        wait "$disk" || late=$?
        cat "$there/said" >&2
        # 1: it was too slow.
        case $status,$late in 0,0) ;; 0,1) status=1 ;; 0,*) status=3 ;; esac
    fi
    rm -rf "$there"
    exit "$status"
}
trap ended EXIT
trap 'exit 130' INT TERM

"$headtime" disk "${DRIVE:-hitachi-7k1000c}" --backing "$there/drive/" --nbd "unix:$there/nbd.sock" \
    --control "$there/fault.sock" --speed "${SPEED:-1}" --max-lateness "${MAX_LATENESS:-100ms}" \
    ${FAULTS:+--fault "$FAULTS"} >/dev/null 2>"$there/said" &
disk=$!
while ! [ -S "$there/nbd.sock" ] || ! [ -S "$there/fault.sock" ]; do
    kill -0 "$disk" 2>/dev/null || exit 3
    sleep 0.1
done

device=$("$headtime" attach "$uri" --name "$name")
attached=1
mkfs.ext4 -q -E nodiscard "$device" "${SIZE:-4G}" >&2
mkdir "$there/mnt"
mount "$device" "$there/mnt"
mounted=1
cd "$there/mnt"
HEADTIME_FAULTS=$there/fault.sock "$@"
