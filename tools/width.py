"""Reports lines of the Rust files named on stdin that are too wide: comments over 100 columns, code over 120.

rustfmt wraps neither comments nor strings. A table and a block of code within a comment may be wider.
"""

import re
import sys

COMMENT, CODE = 100, 120


def wide(path):
    """The lines of a file that are too wide, with their widths."""
    fenced = False
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            comment = re.match(r"\s*//[/!]?(.*)", line)
            if not comment:
                fenced = False
                if len(line) > CODE:
                    yield number, len(line), CODE
                continue
            text = comment.group(1)
            fenced ^= text.strip().startswith("```")
            is_laid_out = fenced or text.lstrip().startswith("|") or text.startswith("     ")
            if len(line) > COMMENT and not is_laid_out:
                yield number, len(line), COMMENT


found = 0
for name in sys.stdin.read().split():
    for number, width, most in wide(name):
        print(f"{name}:{number}: expected at most {most} columns, found {width}")
        found += 1
sys.exit(found > 0)
