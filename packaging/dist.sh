#!/usr/bin/env bash
# Makes everything that is given to users, in target/dist: the static program, an archive with its manual pages and
# completions, a Debian package, the bill of materials, the licences, and the checksums of all (packaging/README.md).
#
#     packaging/dist.sh            HEADTIME_PROGRAM=FILE packages a program that is built already
set -euo pipefail
cd "$(dirname "$0")/.."

TARGET=x86_64-unknown-linux-musl
target=${CARGO_TARGET_DIR:-target}
dist=$target/dist
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
name=headtime-$version-x86_64-linux
# The time in archives: that of the commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

needs() {
    command -v "$1" >/dev/null || { echo "dist.sh: needs $1 (Debian: $2)" >&2; exit 2; }
}
needs dpkg-deb dpkg
needs python3 python3

program=${HEADTIME_PROGRAM:-}
if [ -z "$program" ]; then
    needs musl-gcc musl-tools
    if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET" ]; then
        echo "dist.sh: needs Rust's library for $TARGET (rustup target add $TARGET)" >&2
        exit 2
    fi
    ${CARGO:-cargo} build --locked --profile dist --target $TARGET -p headtime
    program=$target/$TARGET/dist/headtime
fi
# A program that asks for an interpreter needs the libraries of the machine that it was built on.
python3 - "$program" <<'EOF'
import struct, sys
elf = open(sys.argv[1], "rb").read()
start, size, count = struct.unpack_from("<Q", elf, 32)[0], *struct.unpack_from("<HH", elf, 54)
kinds = [struct.unpack_from("<I", elf, start + at * size)[0] for at in range(count)]
sys.exit("dist.sh: the program is not static" if 3 in kinds else 0)
EOF

rm -rf "$dist"
mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bill=$dist/headtime-$version.cdx.json
licences=$dist/headtime-$version-licences.txt
python3 -B packaging/contents.py "$bill" "$licences"

# Compresses as gzip does, without the time and the name.
pack() { gzip -9 -n; }
# Sets all times of a tree, so that archives do not depend on when they were made.
settle() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

install -m 0755 "$program" "$dist/$name"

tree=$work/$name
mkdir -p "$tree/completions"
install -m 0755 "$program" "$tree/headtime"
"$program" manual -o "$tree/man/man1"
for shell in bash zsh fish; do
    "$program" completions $shell >"$tree/completions/headtime.$shell"
done
cp -r packaging/headtime.toml packaging/systemd README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$tree"
cp "$licences" "$tree/licences.txt"
settle "$tree"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" | pack >"$dist/$name.tar.gz"

root=$work/root
doc=$root/usr/share/doc/headtime
install -D -m 0755 "$program" "$root/usr/bin/headtime"
for page in "$tree"/man/man1/*.1; do
    mkdir -p "$root/usr/share/man/man1"
    pack <"$page" >"$root/usr/share/man/man1/$(basename "$page").gz"
done
install -D -m 0644 "$tree/completions/headtime.bash" "$root/usr/share/bash-completion/completions/headtime"
install -D -m 0644 "$tree/completions/headtime.zsh" "$root/usr/share/zsh/vendor-completions/_headtime"
install -D -m 0644 "$tree/completions/headtime.fish" "$root/usr/share/fish/vendor_completions.d/headtime.fish"
install -D -m 0644 -t "$root/usr/lib/systemd/system" packaging/systemd/headtime*
install -D -m 0644 -t "$doc/examples" packaging/headtime.toml packaging/systemd/real-disk.conf
install -D -m 0644 packaging/debian/copyright "$doc/copyright"
pack <"$licences" >"$doc/licences.txt.gz"
pack <CHANGELOG.md >"$doc/changelog.gz"
mkdir -p "$root/etc/headtime" "$root/DEBIAN"
kib=$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
sed -e "s/@VERSION@/$version/" -e "s/@KIB@/$kib/" packaging/debian/control >"$root/DEBIAN/control"
install -m 0755 packaging/debian/postinst packaging/debian/postrm "$root/DEBIAN"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$root" -type d -exec chmod 0755 {} +
find "$root/usr/share" "$root/usr/lib" -type f -exec chmod 0644 {} +
settle "$root"
# dpkg-deb is on every Debian; cargo-deb takes minutes to compile and would add nothing.
dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/headtime_${version}_amd64.deb" >/dev/null

(cd "$dist" && LC_ALL=C sha256sum -- headtime* >SHA256SUMS)
echo "dist.sh: in $dist:"
(cd "$dist" && du -h --apparent-size -- *)
