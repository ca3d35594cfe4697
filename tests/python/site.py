"""The pages of docs/SUMMARY.md as a site with search, in target/site/book.

Fails if a page of docs is not in docs/SUMMARY.md, or if a relative link or an anchor of any Markdown file, or of a page
of the site, leads nowhere. Needs: mdbook, beside this interpreter or in the PATH.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "target" / "site"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    return re.sub(r"`[^`\n]*`", lambda code: re.sub(r"[\[\]()]", " ", code.group()), re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M))


def anchors(text):
    """The anchors of the headings, as GitHub and mdBook make them."""
    found = {}
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M), re.M):
        anchor = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading)).strip().lower().replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {name + (f"-{n}" if n else "") for name, times in found.items() for n in range(times + 1)}


def links(path):
    """The relative links of a page: as it has them, the file, and the anchor."""
    for link in LINK.findall(without_code(path.read_text())):
        if not re.match(r"[a-z]+:", link):
            file, _, anchor = link.partition("#")
            yield link, (path.parent / file).resolve() if file else path, anchor


def broken(paths):
    for path in paths:
        for link, target, anchor in links(path):
            is_there = target.exists() and (not anchor or anchor in anchors(target.read_text()))
            if not is_there:
                yield f"{path.relative_to(ROOT)}: {link} leads nowhere"


def laid_out(pages):
    """The pages under their paths, and the files that they name, which mdBook copies. The site has no other pages and no folders, so a link there becomes its text."""
    shutil.rmtree(SITE, ignore_errors=True)
    source = SITE / "src"
    for page in pages:
        text = page.read_text()
        for link, target, _ in links(page):
            if target not in pages and (target.is_dir() or target.suffix == ".md"):
                text = re.sub(r"\[([^\]]*)\]\(" + re.escape(link) + r"\)", r"\1", text)
            elif target not in pages:
                copy = source / target.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(target, copy)
        copy = source / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)
    summary = (ROOT / "docs" / "SUMMARY.md").read_text()
    moved = LINK.sub(lambda link: f"]({os.path.relpath(ROOT / 'docs' / link.group(1), ROOT)})", summary)
    (source / "SUMMARY.md").write_text(moved)
    shutil.copy(ROOT / "docs" / "book.toml", SITE)


def broken_in_site(pages):
    book = SITE / "book"
    ids = {path: set(re.findall(r'\bid="([^"]*)"', path.read_text())) for path in book.rglob("*.html")}
    for page in pages:
        path = book / page.relative_to(ROOT).with_suffix(".html")
        main = path.read_text().split("<main>")[1].split("</main>")[0]
        for link in re.findall(r'(?:href|src)="([^"]*)"', main):
            file, _, anchor = urllib.parse.unquote(html.unescape(link)).partition("#")
            target = (path.parent / file).resolve() if file else path
            if not re.match(r"[a-z]+:", link) and not (target.exists() and (not anchor or anchor in ids[target])):
                yield f"{path.relative_to(book)}: {link} leads nowhere"


def main():
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    pages = [target for _, target, _ in links(ROOT / "docs" / "SUMMARY.md")]
    missing = sorted({path for path in (ROOT / "docs").glob("*.md") if path.name != "SUMMARY.md"} - set(pages))
    problems = [f"docs/SUMMARY.md does not list {path.name}" for path in missing]
    problems += broken(ROOT / path for path in tracked.split())
    if problems:
        sys.exit("\n".join(problems))
    laid_out(pages)
    mdbook = shutil.which("mdbook", path=f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    subprocess.run([mdbook or "mdbook", "build", str(SITE)], check=True)
    problems = list(broken_in_site(pages))
    if problems:
        sys.exit("\n".join(problems))
    print(f"  {len(pages)} pages in {SITE / 'book'}")


if __name__ == "__main__":
    main()
