"""Files as text: what they say, in order, or one clear reason why not."""

import builtins
import sys
from pathlib import Path

import pytest

from barograph.core.errors import UsageError
from barograph.frame import files
from barograph.frame.files import list_files, read_document


def pdf(*pages):
    """A PDF whose pages say these lines."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, line in enumerate(pages):
        said = f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET" if line else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        box = "/MediaBox [0 0 612 792]"
        objects += [
            f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + 2 * number} 0 R {font} >>",
            f"<< /Length {len(said)} >>\nstream\n{said}\nendstream",
        ]
    out, places = "%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{one}\nendobj\n"
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    table = f"xref\n0 {size}\n0000000000 65535 f \n{rows}trailer << /Size {size} /Root 1 0 R >>\n"
    return f"{out}{table}startxref\n{len(out)}\n%%EOF\n".encode("latin-1")


def written(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.md", "# Title\r\n\r\nSome *text*.\r\n", "# Title\n\nSome *text*.\n"),
        ("a.txt", "\ufeffwith a mark", "with a mark"),
        ("a.txt", "with a mark".encode("utf-16"), "with a mark"),
        ("a.py", "x = 1\n", "x = 1\n"),
        ("NOTES", "no suffix", "no suffix"),
        ("a.pdf", pdf("First page.", "Second page."), "First page.\n\nSecond page.\n"),
        ("a.HTML", "<p>caf&eacute;</p>", "café\n"),
        ("a.html", b"<meta charset=latin-1><p>caf\xe9</p>", "café\n"),
        ("a.html", "<p>a&#xD800;b</p>", "a\ufffdb\n"),
    ],
    ids=range(9),
)
def test_a_file_gives_its_text(tmp_path, name, data, text):
    assert read_document(written(tmp_path, name, data)) == text


def test_html_becomes_markdown_without_what_is_not_said(tmp_path):
    page = """<html><head><title>T</title><style>p {}</style></head><body><h1>Keys</h1>
    <script>steal()</script><p>Rotate <b>monthly</b>.</p><h2>How</h2><ul><li>one</li></ul>
    <template>no</template><noscript>no</noscript></body></html>"""
    text = read_document(written(tmp_path, "a.html", page))
    assert text.splitlines()[0] == "# Keys"
    assert "## How" in text
    assert "Rotate **monthly**." in text
    assert "* one" in text
    assert "steal" not in text
    assert "no" not in text


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"\x00\x01\x02", "NUL"),
        ("a.txt", b"\x89PNG\r\n\x1a\n", "UnicodeDecodeError"),
        ("a.md", "", "no text"),
        ("a.md", " \n", "no text"),
        ("a.pdf", b"not a pdf", "cannot be read"),
        ("a.pdf", pdf("x")[:200], "cannot be read"),
        ("a.pdf", pdf(""), "no text"),
        ("a.html", "<script>only</script>", "no text"),
        ("a.html", "<div>" * 20_000 + "deep", "RecursionError"),
    ],
    ids=range(9),
)
def test_what_cannot_be_read_is_said_with_the_next_step(tmp_path, name, data, words):
    with pytest.raises(UsageError, match=words) as refused:
        read_document(written(tmp_path, name, data))
    assert refused.value.ids["path"].endswith(name)
    assert refused.value.next_step


@pytest.mark.parametrize("word", ["", "word"])
def test_a_pdf_behind_a_password_is_said_and_one_that_anybody_may_open_is_read(tmp_path, word):
    from pypdf import PdfReader, PdfWriter

    path = tmp_path / "locked.pdf"
    writer = PdfWriter(clone_from=PdfReader(written(tmp_path, "open.pdf", pdf("Secret."))))
    writer.encrypt(word, owner_password="owner", algorithm="RC4-128")  # noqa: S106 - of a test
    writer.write(path)
    if not word:
        assert read_document(path) == "Secret.\n"
        return
    with pytest.raises(UsageError, match="decrypted"):
        read_document(path)


def test_what_no_model_can_be_sent_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setitem(files._READERS, ".pdf", lambda _: "a\ud800b")
    assert read_document(written(tmp_path, "a.pdf", "any")) == "a\ufffdb"


@pytest.mark.parametrize(("name", "library"), [("a.html", "bs4"), ("a.pdf", "pypdf")])
def test_a_missing_extra_says_what_to_install(tmp_path, monkeypatch, name, library):
    real = builtins.__import__

    def refuse(module, *args, **kwargs):
        if module == library:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, library, raising=False)
    with pytest.raises(UsageError, match=library) as refused:
        read_document(written(tmp_path, name, "<p>text</p>"))
    assert refused.value.next_step == "pip install 'barograph[knowledge]'"


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1_000_000)
    with pytest.raises(UsageError, match="more than 1 MB"):
        read_document(written(tmp_path, "a.txt", "x" * 1_000_001))


def test_a_file_that_says_it_is_small_is_read_no_further(monkeypatch):
    endless = Path("/proc/self/smaps")
    if not endless.exists():
        pytest.skip("no file here has another size than it says")
    monkeypatch.setattr(files, "MOST_BYTES", 1_000)
    with pytest.raises(UsageError, match="more than"):
        read_document(endless)


def test_a_folder_gives_what_holds_text_in_the_order_of_the_names(tmp_path):
    for name in ("b.md", "a/z.TXT", "a/y.pdf", "c.png", "code.py", ".hidden.md", ".git/x.md"):
        written(tmp_path, name, "text")
    (tmp_path / "link.md").symlink_to(tmp_path / "b.md")
    (tmp_path / "round").symlink_to(tmp_path)
    found, others = list_files(str(tmp_path))
    assert [str(one.relative_to(tmp_path)) for one in found] == ["a/y.pdf", "a/z.TXT", "b.md"]
    assert others == 2


def test_a_file_that_is_named_is_taken_whatever_its_name(tmp_path):
    path = written(tmp_path, "code.py", "x = 1")
    assert list_files(str(path)) == ([path], 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("https://example.org/a.md", "is an address"),
        ("file:///a.md", "is an address"),
        ("nowhere.md", "no file or folder"),
        ("/dev/null", "no file or folder"),
        ("", "is empty"),
        ("word " * 2_000, "cannot be looked at: File name too long"),
    ],
    ids=["https", "file", "nowhere", "a device", "empty", "a text"],
)
def test_an_address_or_nothing_is_refused(given, words):
    with pytest.raises(UsageError, match=words) as refused:
        list_files(given)
    assert refused.value.next_step
