"""Checks the dependencies against deny.toml where cargo deny is not installed: licences, versions and sources.

    python3 tools/licences.py           reports what deny.toml does not allow
    python3 -m doctest tools/licences.py

cargo deny takes minutes to compile, and a check is to work without a network. What both find is the same for the keys
that deny.toml has; any other key is an error here, so that nothing is configured and not checked.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

# The keys of deny.toml that are checked here.
KNOWN = {
    "graph": {"targets", "all-features"},
    "licenses": {"allow"},
    "bans": {"multiple-versions", "wildcards", "allow-wildcard-paths", "skip"},
    "sources": {"unknown-registry", "unknown-git", "allow-registry"},
}


def allows(expression, allowed):
    """Whether a licence expression (SPDX) can be met with the allowed licences alone.

    >>> allows("MIT OR GPL-2.0", {"MIT"}), allows("MIT AND GPL-2.0", {"MIT"}), allows("MIT/Apache-2.0", {"MIT"})
    (True, False, True)
    >>> allows("(MIT OR GPL-2.0) AND Unicode-3.0", {"MIT", "Unicode-3.0"})
    True
    >>> allows("Apache-2.0 WITH LLVM-exception", {"Apache-2.0"})
    False
    >>> allows("GPL-2.0 OR MIT AND ISC", {"MIT"}), allows("", {"MIT"}), allows("MIT MIT", {"MIT"})
    (False, False, False)
    """
    words = re.findall(r"[()/]|[^\s()/]+", expression)
    words = ["OR" if word == "/" else word for word in words]
    at = 0

    def next_is(word):
        nonlocal at
        if at < len(words) and words[at] == word:
            at += 1
            return True
        return False

    def either():
        met = both()
        while next_is("OR"):
            met = both() or met
        return met

    def both():
        met = one()
        while next_is("AND"):
            met = one() and met
        return met

    def one():
        nonlocal at
        if next_is("("):
            met = either()
            return next_is(")") and met
        name = words[at] if at < len(words) else ""
        at += 1
        if next_is("WITH"):
            name += " WITH " + (words[at] if at < len(words) else "")
            at += 1
        return name in allowed

    met = either()
    return met and at == len(words)


def fits(version, wanted):
    """Whether a version begins with the given numbers.

    >>> fits("0.22.1", "0.22"), fits("0.22.1", "0.2"), fits("2.0.119", "2")
    (True, False, True)
    """
    return version == wanted or version.startswith(wanted + ".")


def cargo(*words):
    """What a command of cargo prints."""
    command = [os.environ.get("CARGO", "cargo"), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def used(target, edges, *choice):
    """The packages that are used on a target, as `cargo metadata` describes them.

    `edges` are kinds of dependencies, as of `cargo tree`, and `choice` is its choice of packages and features. `needs`
    are the ids of a package's dependencies.
    """
    # `cargo metadata` takes optional dependencies to be used that no feature asks for; `cargo tree` does not.
    shape = ["--prefix", "none", "--format", "{p}"]
    tree = cargo("tree", "--locked", "--target", target, "--edges", edges, *shape, *choice)
    names = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    known = json.loads(
        cargo("metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", target)
    )
    needs = {node["id"]: node["dependencies"] for node in known["resolve"]["nodes"]}
    packages = [
        {**p, "needs": needs[p["id"]]} for p in known["packages"] if (p["name"], "v" + p["version"]) in names
    ]
    return sorted(packages, key=lambda p: (p["name"], p["version"]))


def faults(rules, packages):
    """What the rules do not allow of the packages, one line each."""
    for table, keys in rules.items():
        for key in keys.keys() - KNOWN.get(table, set()):
            yield f"deny.toml: {table}.{key}: not known to tools/licences.py"
    allowed = set(rules["licenses"]["allow"])
    sources = {f"registry+{address}" for address in rules["sources"]["allow-registry"]}
    versions = {}
    for package in packages:
        name, version = package["name"], package["version"]
        versions.setdefault(name, []).append(version)
        if not allows(package["license"] or "", allowed):
            yield f"{name} {version}: licence {package['license']}: not allowed by deny.toml"
        if package["source"] is not None and package["source"] not in sources:
            yield f"{name} {version}: from {package['source']}: not a source of deny.toml"
        if package["source"] is None:
            for dependency in package["dependencies"]:
                if dependency["req"] == "*" and not dependency.get("path"):
                    yield f"{name}: depends on any version of {dependency['name']}"
    skipped = [entry["crate"].split("@") for entry in rules["bans"]["skip"]]
    for name, numbers in sorted(versions.items()):
        counted = [v for v in numbers if not any(name == crate and fits(v, wanted) for crate, wanted in skipped)]
        if len(counted) > 1:
            yield f"{name}: versions {', '.join(sorted(counted))}: expected one, or an entry of bans.skip in deny.toml"
    for crate, wanted in skipped:
        if not any(fits(version, wanted) for version in versions.get(crate, [])):
            yield f"deny.toml: bans.skip: {crate}@{wanted} is not used"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    rules = tomllib.loads((root / "deny.toml").read_text(encoding="utf-8"))
    packages = used(rules["graph"]["targets"][0], "normal,build,dev", "--workspace", "--all-features")
    said = list(faults(rules, packages))
    print(*said, sep="\n", end="\n" if said else "")
    print(f"licences.py: {len(packages)} packages, {len(said)} faults (cargo deny was not found)")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
