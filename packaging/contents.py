"""Lists what the program is made of: a CycloneDX 1.5 document, and the licences of all that is linked into it.

    python3 packaging/contents.py BILL.json LICENCES.txt

Both are made from what cargo knows offline, and are the same each time for the same Cargo.lock and version. (The tool
cargo-cyclonedx writes one document for each crate of the workspace and takes minutes to compile.)
"""

import hashlib
import json
import pathlib
import re
import sys
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from licences import used  # noqa: E402 (its directory is known now)

TARGET = "x86_64-unknown-linux-musl"
NOTICES = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)")

PREAMBLE = """\
headtime is licensed under the Apache License 2.0 or the MIT licence, as you prefer. The program is linked with the
crates below, with the standard library of Rust (MIT or Apache-2.0) and with musl (MIT; Copyright 2005-2020 Rich Felker
and others). Texts that several crates share are printed once.
"""


def purl(package):
    """The identifier of a package in the documents."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def licence(package):
    """A package's licences as an SPDX expression: some write / for OR."""
    return re.sub(r"\s*/\s*", " OR ", package["license"] or "")


def bill(program, packages, linked, checksums):
    """The CycloneDX document. Packages that are only used while building are excluded from the program."""
    parts = {purl(p) for p in packages}
    components = []
    for package in packages:
        name, version = package["name"], package["version"]
        component = {
            "type": "library",
            "bom-ref": purl(package),
            "name": name,
            "version": version,
            "scope": "required" if (name, version) in linked else "excluded",
            "licenses": [{"expression": licence(package)}],
            "purl": purl(package),
        }
        if (name, version) in checksums:
            component["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
        if package["repository"]:
            component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        components.append(component)
    by_id = {p["id"]: p for p in [program, *packages]}
    needs = [
        {"ref": purl(p), "dependsOn": sorted({purl(by_id[n]) for n in p["needs"] if n in by_id} & parts)}
        for p in [program, *packages]
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purl(program),
                "name": program["name"],
                "version": program["version"],
                "licenses": [{"expression": licence(program)}],
                "purl": purl(program),
            },
        },
        "components": components,
        "dependencies": needs,
    }


def notices(packages):
    """The licences of packages, and each text once with the packages that have it."""
    texts, rows = {}, []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        rows.append(f"{name:<40} {licence(package)}")
        folder = pathlib.Path(package["manifest_path"]).parent
        for file in sorted(file for file in folder.iterdir() if NOTICES.match(file.name) and file.is_file()):
            text = file.read_text(encoding="utf-8", errors="replace").strip()
            texts.setdefault(text, []).append(name)
    blocks = [f"{'=' * 100}\n{', '.join(dict.fromkeys(names))}\n\n{text}\n" for text, names in texts.items()]
    return "\n".join([PREAMBLE, *rows, "", *blocks])


def main(bill_file, licences_file):
    choice = ["-p", "headtime"]
    packages = used(TARGET, "normal,build", *choice)
    linked = {(p["name"], p["version"]) for p in used(TARGET, "normal,no-proc-macro", *choice)}
    lock = (ROOT / "Cargo.lock").read_bytes()
    locked = tomllib.loads(lock.decode())["package"]
    checksums = {(p["name"], p["version"]): p["checksum"] for p in locked if "checksum" in p}
    (program,) = [p for p in packages if p["name"] == "headtime"]
    others = [p for p in packages if p is not program]
    document = bill(program, others, linked, checksums)
    # The same content has the same number.
    number = uuid.UUID(hashlib.sha256(json.dumps(document).encode()).hexdigest()[:32], version=4)
    document = {**document, "serialNumber": f"urn:uuid:{number}"}
    pathlib.Path(bill_file).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    foreign = [p for p in others if p["source"] and (p["name"], p["version"]) in linked]
    pathlib.Path(licences_file).write_text(notices(foreign), encoding="utf-8")
    print(f"{len(others)} packages, {len(foreign)} of others are linked into the program")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected BILL.json LICENCES.txt")
    main(*sys.argv[1:])
