#!/usr/bin/env bash
# Checks what packaging/dist.sh made: the checksums, the program in an empty root, the pages and completions, the
# systemd units, and the Debian package, which is installed in a clean root and serves the example configuration there;
# a client outside reads it over NBD. Needs root, for chroot. It names what it cannot check; with --strict it then
# fails.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

dist=$(realpath "${CARGO_TARGET_DIR:-target}/dist")
strict=
[ "${1:-}" != --strict ] || strict=1
skipped=0
skip() { echo "check.sh: skipped: $*"; skipped=$((skipped + 1)); }
fail() { echo "check.sh: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null; }
[ "$(id -u)" = 0 ] || fail "needs root"

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    ! mountpoint -q "$work/root/proc" || umount "$work/root/proc"
    rm -rf "$work"
}
trap finish EXIT

(cd "$dist" && sha256sum --quiet --check SHA256SUMS) || fail "a checksum is wrong"
[ "$(cd "$dist" && ls | grep -cv SHA256SUMS)" = "$(wc -l <"$dist/SHA256SUMS")" ] || fail "a file has no checksum"
deb=$(ls "$dist"/headtime_*_amd64.deb)
archive=$(ls "$dist"/headtime-*.tar.gz)

# The static program, with nothing beside it.
mkdir "$work/empty"
install -m 0755 "${archive%.tar.gz}" "$work/empty/headtime"
chroot "$work/empty" /headtime --version
chroot "$work/empty" /headtime simulate --seconds 2 --json >"$work/simulated.json"
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/simulated.json"

# What is in the archive.
tar -C "$work" -xzf "$archive"
tree=$work/$(basename "$archive" .tar.gz)
cmp "$tree/headtime" "${archive%.tar.gz}"
bash -n "$tree/completions/headtime.bash"
if has zsh; then zsh -n "$tree/completions/headtime.zsh"; else skip "completions for zsh: no zsh"; fi
if has fish; then fish --no-execute "$tree/completions/headtime.fish"; else skip "completions for fish: no fish"; fi
if has mandoc; then
    mandoc -T lint -W error "$tree"/man/man1/*.1 || fail "a page for man is wrong"
else
    skip "pages for man: no mandoc"
fi
python3 - "$dist" <<'EOF'
import json, pathlib, sys
(bill,) = pathlib.Path(sys.argv[1]).glob("*.cdx.json")
bill = json.loads(bill.read_text())
names = {c["bom-ref"] for c in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
assert bill["bomFormat"] == "CycloneDX" and len(names) == len(bill["components"]) + 1 > 100
assert all(n in names for d in bill["dependencies"] for n in [d["ref"], *d["dependsOn"]])
assert all(c["licenses"][0]["expression"] for c in bill["components"])
EOF

# The package in a clean root: of Debian where one can be made, else with nothing but the package.
root=$work/root
bare=
bootstrap=(timeout 600 debootstrap --variant=minbase --include=adduser)
bootstrap+=("${SUITE:-bookworm}" "$root" ${MIRROR:+"$MIRROR"})
if ! has debootstrap || ! "${bootstrap[@]}" >"$work/debootstrap" 2>&1; then
    skip "the package's scripts: no Debian root could be made with debootstrap"
    bare=1
    rm -rf "$root"
    mkdir -p "$root/tmp" "$root/dev" "$root/proc"
    dpkg-deb -x "$deb" "$root"
    dpkg-deb --info "$deb" >/dev/null
    echo "headtime:x:999:999::/nonexistent:/usr/sbin/nologin" >"$root/etc/passwd"
    user=999:999
else
    cp "$deb" "$root/headtime.deb"
    # Its only dependency is there.
    chroot "$root" dpkg -i /headtime.deb >"$work/dpkg" 2>&1 || {
        cat "$work/dpkg"
        fail "the package is not installed"
    }
    chroot "$root" dpkg --verify headtime
    user=$(chroot "$root" id -u headtime):$(chroot "$root" id -g headtime)
fi
mkdir -p "$root/proc"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"

# The units, beside those of this machine, on which they depend; and what systemd judges to be exposed.
if has systemd-analyze && [ -d /lib/systemd/system ]; then
    units=$work/units
    mkdir -p "$units/lib/systemd" "$units/usr/bin" "$units/bin" "$units/etc/systemd/system/headtime@disk.service.d"
    cp -a /lib/systemd/system "$units/lib/systemd/"
    cp "$root"/usr/lib/systemd/system/headtime* "$units/lib/systemd/system/"
    cp "$root/usr/share/doc/headtime/examples/real-disk.conf" "$units/etc/systemd/system/headtime@disk.service.d/"
    install -m 0755 "$root/usr/bin/headtime" /usr/bin/install "$units/usr/bin/"
    install -m 0755 /bin/kill "$units/bin/"
    for unit in headtime@{example,disk}.service headtime-scrub@example.{service,timer}; do
        said=$(systemd-analyze verify --root="$units" --man=no "$unit" 2>&1 | grep headtime || true)
        [ -z "$said" ] || fail "systemd-analyze verify $unit: $said"
    done
    for unit in headtime@example:20 headtime@disk:30 headtime-scrub@example:10; do
        systemd-analyze security --root="$units" --offline=true --no-pager --threshold="${unit#*:}" \
            "${unit%:*}.service" >"$work/security" || fail "${unit%:*}.service: $(cat "$work/security")"
        tail -1 "$work/security"
    done
else
    skip "the systemd units: no systemd-analyze"
fi

# What headtime@example.service does: its directories, its user, its command.
install -m 0644 "$root/usr/share/doc/headtime/examples/headtime.toml" "$root/etc/headtime/example.toml"
install -d -m 0755 "$root/run/headtime"
install -d -m 0750 -o "${user%:*}" -g "${user#*:}" "$root/run/headtime/example"
install -d -m 0755 "$root/var/lib/headtime"
install -d -m 0700 -o "${user%:*}" -g "${user#*:}" "$root/var/lib/headtime/example"
as() { chroot --userspec="$user" "$root" "$@"; }
as /usr/bin/headtime serve --check /etc/headtime/example.toml
# Not by `as`: a function in the background has a shell between, and the signal is for the server.
chroot --userspec="$user" "$root" /usr/bin/headtime serve /etc/headtime/example.toml >"$work/said" 2>&1 &
server=$!
socket=$root/run/headtime/example/nbd.sock
for _ in $(seq 300); do
    [ ! -S "$socket" ] || break
    kill -0 "$server" 2>/dev/null || { cat "$work/said"; fail "the server ended"; }
    sleep 0.1
done
# A unix socket's path has at most 107 bytes.
ln -s "$root/run/headtime/example" "$work/s"
for export in data archive; do
    uri="nbd+unix:///$export?socket=$work/s/nbd.sock"
    if has nbdinfo; then nbdinfo --size "$uri"; else skip "nbdinfo: not installed"; fi
    if has qemu-io; then
        qemu-io -f raw -c 'write -q -P 7 64k 4k' -c 'read -q -P 7 64k 4k' "$uri" >"$work/io" 2>&1
        ! grep -i 'fail\|error' "$work/io" || fail "a block is read as it was not written"
    else
        skip "reading and writing: no qemu-io"
    fi
done
as /usr/bin/headtime top --once --control /run/headtime/example/control.sock >"$work/top"
grep -q 'data' "$work/top" || { cat "$work/top"; fail "top does not show the exports"; }
# What headtime-scrub@example.service does, for a moment: it is interrupted, which its unit takes for success.
status=0
timeout --signal=INT 3 chroot --userspec="$user" "$root" /usr/bin/headtime scrub --restart \
    --control /run/headtime/example/control.sock --journal /var/lib/headtime/example/journal \
    >"$work/scrub" 2>&1 || status=$?
[ "$status" = 130 ] || [ "$status" = 124 ] || { cat "$work/scrub"; fail "the scrub ended with status $status"; }
kill -TERM "$server"
wait "$server" || { cat "$work/said"; fail "the server did not end well"; }
server=
[ -z "$bare" ] || rm -f "$root/etc/passwd"

# Nothing is left of the package but its user and data.
if [ -z "$bare" ]; then
    chroot "$root" dpkg --purge headtime >"$work/dpkg" 2>&1 || { cat "$work/dpkg"; fail "the package is not removed"; }
    [ ! -e "$root/usr/bin/headtime" ] || fail "the program is there after it was removed"
    [ -e "$root/var/lib/headtime/example/disk.img" ] || fail "data is gone with the package"
fi
if has lintian; then
    lintian --fail-on error --tag-display-limit 0 --allow-root "$deb" || fail "lintian: the package is wrong"
else
    skip "lintian: not installed"
fi

echo "check.sh: everything that was checked is in order; $skipped skipped"
[ -z "$strict" ] || [ "$skipped" = 0 ] || fail "--strict: $skipped checks were skipped"
