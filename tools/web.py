"""Puts the web page together: tools/web.py SIMULATOR.wasm DIRECTORY.

The page must open from a folder, where browsers load neither modules nor WebAssembly files. So the modules of web/src
become one script each for the page and for its worker, and the simulator becomes a text in a script: LZMA in base 85.
Only what is written here of modules is understood: `import { a, b } from "./file.js";` on one line, and `export` before
a declaration.
"""

import json
import lzma
import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "web" / "src"
# Each module is behind those that it imports.
WORKER = ["lzma", "program", "wasi", "worker"]
PAGE = [
    "dom", "format", "recording", "engine", "platter", "strip", "map", "stage", "scenario", "state", "view",
    "steps", "lab", "main",
]
COPIED = ["index.html", "page.css"]
# What web/src/lzma.js decodes.
LZMA = {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 2, "dict_size": 1 << 24}
# The whole page, as it is served without compression.
MOST_BYTES = 1_000_000

IMPORT = re.compile(r'import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n')
DECLARED = re.compile(r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", re.M)
EXPORTED = re.compile(r"^export (?:async )?(?:const|let|function|class) (\w+)", re.M)


def script(names):
    """The modules `names` as one script.

    >>> IMPORT.findall('import { a, b } from "./c.js";\\n')
    [('a, b', 'c')]
    >>> EXPORTED.findall("export async function f() {}\\nconst g = 1;\\nexport const H = 2;")
    ['f', 'H']
    """
    declared, exported, parts = {}, {}, []
    for name in names:
        text = (SOURCES / f"{name}.js").read_text(encoding="utf-8")
        for wanted, source in IMPORT.findall(text):
            missing = set(wanted.split(", ")) - exported.get(source, set())
            if missing:
                sys.exit(f"{name}.js imports {', '.join(sorted(missing))}, which {source}.js does not export before it")
        for one in DECLARED.findall(text):
            if one in declared:
                sys.exit(f"{name}.js and {declared[one]}.js both declare {one}")
            declared[one] = name
        exported[name] = set(EXPORTED.findall(text))
        text = re.sub(r"^export ", "", IMPORT.sub("", text), flags=re.M)
        if re.search(r"^import\b", text, re.M):
            sys.exit(f"{name}.js: an import that is not of the form import {{ a, b }} from \"./file.js\";")
        # Comments on lines of their own, and indentation, are not for browsers. No text of ours spans lines.
        parts.append(re.sub(r"^ *(//.*\n|\n)?", "", text, flags=re.M))
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def base85(data):
    """Five digits for each four bytes, the most significant first; from '#' on, without the backslash.

    >>> base85(bytes(4)), base85(b"\\xff\\xff\\xff\\xff")
    ('#####', 'v:Y/#')
    """
    digits = [chr(35 + i + (35 + i >= 92)) for i in range(85)]
    out = []
    for at in range(0, len(data), 4):
        value = int.from_bytes(data[at:at + 4].ljust(4, b"\0"), "big")
        block = []
        for _ in range(5):
            value, digit = divmod(value, 85)
            block.append(digits[digit])
        out.extend(reversed(block))
    return "".join(out)


def main(wasm, directory):
    program = pathlib.Path(wasm).read_bytes()
    packed = lzma.compress(program, lzma.FORMAT_RAW, filters=[LZMA])
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    worker = json.dumps(script(WORKER))
    files = {name: (SOURCES / name).read_bytes() for name in COPIED}
    text = f'const PROGRAM = {{ size: {len(program)}, packed: {len(packed)}, text: "{base85(packed)}" }};\n'
    files["simulator.js"] = text.encode()
    files["page.js"] = f"const WORKER_SOURCE = {worker};\n{script(PAGE)}".encode()
    for old in directory.iterdir():
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    size = sum(map(len, files.values()))
    each = ", ".join(f"{name} {len(content):,}" for name, content in files.items())
    print(f"web page: {size:,} bytes in {directory} ({each})")
    if size >= MOST_BYTES:
        sys.exit(f"web page: expected less than {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
