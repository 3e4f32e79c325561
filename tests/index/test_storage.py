"""Saved indexes: round trips, what is written, and what is refused."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from memsheaf.index import BM25Index, Document, SnapshotError, array_file
from memsheaf.index.array_file import ArrayFile


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", f"text number{i}", (f"u{i % 3}",)) for i in range(200))
    index.remove("d7")
    index.save(tmp_path / "index", sequence=41)
    return tmp_path / "index"


def test_a_loaded_index_answers_and_takes_writes(saved: Path) -> None:
    index = BM25Index.load(saved, analyzer="plain")
    assert (index.sequence, len(index), "d7" in index) == (41, 199, False)
    assert [h.id for h in index.search("number8")] == ["d8"]
    assert len(index.search("text", 500, where=("u1",))) == 66
    index.add("d8", "replaced")
    assert index.search("number8") == []
    assert [h.id for h in index.search("replaced")] == ["d8"]
    assert index.remove("d9")
    index.save(saved, sequence=42)
    again = BM25Index.load(saved, analyzer="plain")
    assert (again.sequence, len(again)) == (42, 198)
    assert [h.id for h in again.search("replaced")] == ["d8"]


def test_large_parts_are_not_written_again(saved: Path) -> None:
    before = {p.name for p in saved.glob("*.segment")}
    index = BM25Index.load(saved, analyzer="plain")
    index.add("new", "one more")
    index.save(saved, sequence=42)
    assert before < {p.name for p in saved.glob("*.segment")}
    assert not list(saved.glob("*.tmp"))


def test_files_are_private(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in saved.iterdir()} == {0o600}


def test_the_words_of_a_removed_document_are_not_written(tmp_path: Path) -> None:
    index = BM25Index("plain")
    index.add("keep", "plain words")
    index.add("gone", "hunter2secret words")
    index.remove("gone")
    index.save(tmp_path, sequence=1)
    assert all(b"hunter2secret" not in p.read_bytes() for p in tmp_path.iterdir())


def test_compaction_leaves_nothing_of_removed_documents(tmp_path: Path) -> None:
    index = BM25Index("plain")
    index.add_many(Document(f"d{i}", f"text number{i}") for i in range(5_000))
    index.remove("d4321")
    index.save(tmp_path, sequence=1)
    assert any(b"d4321" in p.read_bytes() for p in tmp_path.iterdir())
    before = [(hit.id, hit.score) for hit in index.search("text number77")]
    index.compact()
    index.save(tmp_path, sequence=2)
    assert not any(b"d4321" in p.read_bytes() for p in tmp_path.iterdir())
    again = BM25Index.load(tmp_path, analyzer="plain")
    assert [(hit.id, hit.score) for hit in again.search("text number77")] == before
    assert len(again) == 4_999


def test_another_analyzer_is_refused(saved: Path) -> None:
    with pytest.raises(SnapshotError, match="plain"):
        BM25Index.load(saved, analyzer="english")


def test_an_absent_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no saved index"):
        BM25Index.load(tmp_path, analyzer="plain")


KINDS = ["manifest", "*.segment", "*.terms", "*.state"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["cut", "long", "foreign", "empty", "missing", "another"])
def test_damaged_files_are_refused(saved: Path, kind: str, damage: str) -> None:
    file = next(saved.glob(kind))
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-1])
    elif damage == "long":
        file.write_bytes(data + b"\0")
    elif damage == "foreign":
        file.write_bytes(b"SQLite format 3\0" * 8)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "another":
        file.write_bytes(next(saved.glob(KINDS[KINDS.index(kind) - 1])).read_bytes())
    else:
        file.unlink()
    with pytest.raises(SnapshotError):
        BM25Index.load(saved, analyzer="plain")


@pytest.mark.parametrize("kind", KINDS)
def test_any_flipped_bit_is_refused(tmp_path: Path, kind: str) -> None:
    index = BM25Index("plain", field_weights={"tags": 0.3})
    for n in range(4):
        index.add(f"d{n}", {"content": f"text number{n}", "tags": "t"}, partition=(f"u{n}",))
    index.remove("d2")
    index.save(tmp_path, sequence=5)
    file = next(tmp_path.glob(kind))
    data = file.read_bytes()
    BM25Index.load(tmp_path, analyzer="plain").verify()
    for at in {*range(64), *range(0, len(data), 5)}:
        file.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        with pytest.raises(SnapshotError):
            BM25Index.load(tmp_path, analyzer="plain").verify()


def test_a_damaged_array_is_refused_when_it_is_first_read(saved: Path) -> None:
    file = next(saved.glob("*.segment"))
    place = ArrayFile(file)["docs"].tobytes()
    data = file.read_bytes()
    at = data.index(place) + 40
    file.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    index = BM25Index.load(saved, analyzer="plain")
    for _ in range(2):
        with pytest.raises(SnapshotError, match="damaged; rebuild it"):
            index.search("text")


def test_another_format_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_file, "FORMAT", array_file.FORMAT + 1)
    with pytest.raises(SnapshotError, match="has format"):
        BM25Index.load(saved, analyzer="plain")


_SAVES = """
import sys
from memsheaf.index import BM25Index, Document
index = BM25Index("plain")
for number in range(1_000_000):
    index.add_many(Document(f"d{n}", f"round{number} text{n}") for n in range(2_100))
    index.add(f"s{number}", f"single round{number}")
    index.save(sys.argv[1], sequence=number)
    print(number, flush=True)
"""


@pytest.mark.parametrize("milliseconds", [0, 3, 7, 12, 18, 25])
def test_a_save_that_is_killed_leaves_a_whole_index(tmp_path: Path, milliseconds: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", _SAVES, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child.stdout:
        told = [int(child.stdout.readline()) for _ in range(2)][-1]
        time.sleep(milliseconds / 1000)
        child.kill()
        told = max([told, *map(int, child.stdout.read().split())])
    child.wait()
    index = BM25Index.load(tmp_path, analyzer="plain")
    index.verify()
    assert index.sequence in (told, told + 1)
    assert len(index) == 2_100 + index.sequence + 1
    assert len(index.search(f"round{index.sequence}", 5_000)) == 2_101
    assert [hit.id for hit in index.search(f"single round{told}", 1)] == [f"s{told}"]
    index.save(tmp_path, sequence=told + 2)
    assert not list(tmp_path.glob("*.tmp"))
    assert BM25Index.load(tmp_path, analyzer="plain").sequence == told + 2
