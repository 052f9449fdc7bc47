"""Reports circles of imports between the modules of each crate.

An edge leads from a file to the file whose item a path `crate::...` or `super::...` names; re-exports are
followed. Tests inside files do not count, nor do circles within a module and its own children, which are one unit.
"""

import pathlib
import re
import sys

PATH = re.compile(r"\b((?:crate|super|self)(?:::(?:super|\w+))+)(::\{)?")


def modules(src):
    """Each module's path as a tuple, and its file."""
    found = {}
    for file in sorted(src.rglob("*.rs")):
        parts = file.relative_to(src).with_suffix("").parts
        if parts in {("lib",), ("main",)}:
            found[()] = file
        elif parts[-1] == "mod":
            found[parts[:-1]] = file
        elif parts[0] != "bin":
            found[parts] = file
    return found


def code(file):
    """A file's code without comments, strings and tests."""
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    text = re.split(r"#\[cfg\(test\)\]\s*\n\s*mod tests", text)[0]
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


def expand(text):
    """All paths of the code, with groups in braces expanded."""
    for match in PATH.finditer(text):
        prefix = match.group(1).split("::")
        if not match.group(2):
            yield prefix
            continue
        depth, start, stack, word = 1, match.end(), [prefix], ""
        for c in text[start:]:
            if c == "{":
                stack.append(stack[-1] + [w for w in word.strip().split("::") if w])
                word, depth = "", depth + 1
            elif c in ",}":
                name = word.strip().split(" as ")[0]
                if name:
                    yield stack[-1] + name.split("::")
                word = ""
                if c == "}":
                    depth -= 1
                    stack.pop()
                    if not depth:
                        break
            else:
                word += c


def absolute(path, at):
    """A path from the crate's root, for a module `at`; None where it is not one."""
    rest = list(path)
    if rest[0] == "crate":
        base, rest = (), rest[1:]
    else:
        base = at
        while rest and rest[0] in {"super", "self"}:
            base = base[:-1] if rest[0] == "super" else base
            rest = rest[1:]
    return base + tuple(rest)


def exports(found):
    """For each module, the names it exports again, and where they come from."""
    again = {}
    for at, file in found.items():
        names = again.setdefault(at, {})
        for use in re.finditer(r"pub(?:\([^)]*\))? use ([^;]+);", code(file)):
            text = use.group(1).strip()
            if text.split("::")[0] not in {"crate", "super", "self"}:
                text = "self::" + text
            for path in expand(text):
                target = absolute(path, at)
                if target and target[-1] != "self":
                    names[target[-1]] = target
    return again


def resolve(target, found, again, depth=0):
    """The module whose item a path names."""
    for cut in range(len(target), -1, -1):
        if target[:cut] in found:
            owner = target[:cut]
            if cut < len(target) and depth < 8:
                source = again[owner].get(target[cut])
                if source and source != target:
                    return resolve(source, found, again, depth + 1)
            return owner
    return ()


def circles(edges):
    """The strongly connected components of more than one module (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10_000)
    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def one_unit(part):
    """Whether the modules are one and its descendants, which may import each other."""
    top = min(part, key=len)
    return all(m[: len(top)] == top for m in part) and top != ()


def main():
    bad = 0
    for src in sorted(pathlib.Path(__file__).resolve().parent.parent.glob("crates/*/src")):
        found = modules(src)
        again = exports(found)
        edges = {}
        for at, file in found.items():
            targets = (absolute(path, at) for path in expand(code(file)))
            edges[at] = {resolve(t, found, again) for t in targets} - {at, ()}
        for part in circles(edges):
            if not one_unit(part):
                bad += 1
                names = ", ".join("::".join(m) for m in part)
                print(f"{src.parent.name}: a circle of imports: {names}")
                for m in part:
                    print(f"    {'::'.join(m)} -> {', '.join('::'.join(w) for w in sorted(edges[m]) if w in part)}")
    sys.exit(bad > 0)


main()
