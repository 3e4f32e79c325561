"""The vector index against a brute-force oracle, and its files."""

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsheaf.index import IndexingError, SnapshotError, VectorIndex, vector_rows
from memsheaf.index.vectors import Storage

RNG = np.random.default_rng(7)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memsheaf.index.vectors.BLOCK_ROWS", 4)
    monkeypatch.setattr("memsheaf.index.vectors._BATCH", 3)
    monkeypatch.setattr("memsheaf.index.vector_rows.BLOCK_ROWS", 4)


def oracle(
    held: dict[str, tuple[list[float], tuple[str | None, ...]]],
    query: list[float],
    limit: int,
    where: tuple[str | None, ...] = (),
) -> list[tuple[str, float]]:
    def cosine(vector: list[float]) -> float:
        norm = math.hypot(*vector) * math.hypot(*query)
        return sum(a * b for a, b in zip(vector, query, strict=True)) / norm if norm else 0.0

    def inside(partition: tuple[str | None, ...]) -> bool:
        return all(want is None or want == has for want, has in zip(where, partition, strict=False))

    rows = [(id, cosine(v)) for id, (v, partition) in held.items() if inside(partition)]
    return sorted(rows, key=lambda row: (-round(row[1], 9), row[0]))[:limit]


numbers = st.integers(-3, 3).map(float)
vectors = st.lists(numbers, min_size=3, max_size=3).filter(any)
steps = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abcdefghijklmnop"), vectors, st.sampled_from("xy")),
    st.tuples(st.just("remove"), st.sampled_from("abcdefghijklmnop")),
)


def test_opposite_vectors_are_found_though_rounding_steps_over_one() -> None:
    index = VectorIndex("toy", 3)
    index.add("a", [-2.0, 2.0, -2.0])
    assert [hit.score for hit in index.search([2.0, -2.0, 2.0])] == [-1.0]


@given(st.lists(steps, max_size=40), vectors, st.integers(1, 20), st.sampled_from([None, "x", "z"]))
@settings(max_examples=120)
def test_any_history_equals_brute_force(
    history: list[tuple[Any, ...]], query: list[float], limit: int, user: str | None
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memsheaf.index.vectors.BLOCK_ROWS", 4)
        patch.setattr("memsheaf.index.vector_rows.BLOCK_ROWS", 4)
        index = VectorIndex("toy", 3)
        held: dict[str, tuple[list[float], tuple[str | None, ...]]] = {}
        for kind, id, *rest in history:
            if kind == "add":
                index.add(id, rest[0], partition=(rest[1],))
                held[id] = (rest[0], (rest[1],))
            else:
                assert index.remove(id) == (held.pop(id, None) is not None)
    hits = index.search(query, limit, where=(user,))
    expected = oracle(held, query, limit, (user,))
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)
    # Parallel vectors of different length tie in theory only: ids are compared where scores differ.
    assert {hit.id for hit in hits} <= set(held)
    assert sorted(index.ids()) == sorted(held)
    assert len(index) == len(held)


def test_equal_vectors_tie_by_id_wherever_they_lie(small_blocks: None) -> None:
    index = VectorIndex("toy", 5)
    vector = RNG.standard_normal(5)
    names = [f"{n:03}" for n in RNG.permutation(50)]
    for name in names:
        index.add(name, vector)
    assert [hit.id for hit in index.search(RNG.standard_normal(5), 12)] == sorted(names)[:12]


@pytest.mark.parametrize(
    ("storage", "error"), [("float32", 1e-6), ("float16", 1e-3), ("int8", 2e-2)]
)
def test_storage_costs_only_its_rounding(storage: Storage, error: float) -> None:
    matrix = RNG.standard_normal((500, 48)) * 10.0 ** RNG.integers(-20, 15, (500, 1))
    query = RNG.standard_normal(48)
    index = VectorIndex("toy", 48, storage=storage)
    index.add_many([str(n) for n in range(500)], matrix)
    cosines = matrix @ query / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query)
    hits = index.search(query, 500)
    assert len(hits) == 500
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert max(abs(hit.score - cosines[int(hit.id)]) for hit in hits) < error


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_narrow_storage_behaves_alike(storage: Storage, small_blocks: None, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    index, wide = VectorIndex("toy", 8, storage=storage), VectorIndex("toy", 8)
    for n in range(60):
        vector, id, user = rng.standard_normal(8), str(n % 25), ("x", "y")[n % 2]
        for each in (index, wide):
            each.add(id, vector, partition=(user,))
            if n % 7 == 0:
                assert each.remove(str(n % 5)) or n < 7
        if n == 40:
            index.save(tmp_path, sequence=n)
            index = VectorIndex.load(tmp_path, space="toy", dimensions=8)
            assert (index.storage, index.sequence) == (storage, n)
    query = rng.standard_normal(8)
    for where in ((), ("x",)):
        for allow in (None, {"1", "2", "3", "17"}, lambda id: id < "2"):
            found = {h.id: h.score for h in index.search(query, 99, where=where, allow=allow)}
            truth = {h.id: h.score for h in wide.search(query, 99, where=where, allow=allow)}
            assert found == pytest.approx(truth, abs=0.03)
            assert found
    assert sorted(index.ids()) == sorted(wide.ids())


def test_filters_act_before_the_cut() -> None:
    index = VectorIndex("toy", 2)
    ids = [f"{n:02}" for n in range(40)]
    index.add_many(
        ids, [[1.0, n / 40] for n in range(40)], partitions=[("u", str(n % 2)) for n in range(40)]
    )
    query = [1.0, 0.0]
    assert [h.id for h in index.search(query, 2, where=("u", "1"))] == ["01", "03"]
    assert [h.id for h in index.search(query, 2, where=(None, "1"))] == ["01", "03"]
    assert [h.id for h in index.search(query, 2, allow={"39", "38", "gone"})] == ["38", "39"]
    assert [h.id for h in index.search(query, 2, allow=lambda id: id > "30")] == ["31", "32"]
    index.remove("00")
    mask = np.array([id > "30" for id in index.ids()])
    assert [h.id for h in index.search(query, 2, allow=mask)] == ["31", "32"]
    assert [h.id for h in index.search(query, 2, allow=mask, where=("u", "0"))] == ["32", "34"]
    with pytest.raises(IndexingError, match="order of ids"):
        index.search(query, allow=mask[1:])
    assert [h.id for h in index.search(query, 9, allow={"38", "39"}, where=("u", "1"))] == ["39"]
    assert index.search(query, 5, where=("v",)) == []
    assert index.search(query, 5, allow=[]) == []
    assert len(index.search([0.0, 1.0], 40, min_score=0.5)) < 40


def test_zero_vectors_are_near_to_nothing() -> None:
    index = VectorIndex("toy", 2)
    index.add("zero", [0.0, 0.0])
    assert [(h.id, h.score) for h in index.search([1.0, 0.0])] == [("zero", 0.0)]
    assert index.search([0.0, 0.0]) == []
    assert index.search([1.0, 0.0], 0) == []
    assert VectorIndex("toy", 2).search([1.0, 0.0]) == []


@pytest.mark.parametrize(
    "bad", [[1.0], [1.0, math.nan], [math.inf, 0.0], [[1.0, 2.0]], [1e39, 0.0]]
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_bad_vectors_are_refused_and_change_nothing(bad: list[float]) -> None:
    index = VectorIndex("toy", 2)
    index.add("a", [1.0, 0.0])
    with pytest.raises(IndexingError):
        index.add("a", bad)
    with pytest.raises(IndexingError):
        index.search(bad)
    with pytest.raises(IndexingError):
        index.add_many(["b", "c"], [[1.0, 1.0]])
    with pytest.raises(IndexingError):
        index.add_many(["b"], [[1.0, 1.0]], partitions=[("x",), ("y",)])
    assert list(index.ids()) == ["a"]
    assert index.search([1.0, 0.0])[0].score == 1.0


def test_replacing_everything_reclaims_the_space(small_blocks: None) -> None:
    index = VectorIndex("toy", 2)
    for turn in range(20):
        index.add_many([str(n) for n in range(11)], [[1.0, turn + n] for n in range(11)])
    assert sum(block.count for block in index._blocks) <= 2 * 11 + 8
    assert len(index.search([1.0, 0.0], 50)) == 11


def test_a_reader_sees_a_replacement_whole(small_blocks: None) -> None:
    index = VectorIndex("toy", 2)
    index.add_many([str(n) for n in range(9)], [[1.0, n] for n in range(9)])
    done = threading.Event()

    def write() -> None:
        for turn in range(400):
            index.add("4", [1.0, turn])
            index.remove("8")
            index.add("8", [1.0, turn])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not done.is_set():
            for hits in (
                index.search([1.0, 0.0], 20),
                index.search([1.0, 0.0], 20, allow=set("01234567")),
            ):
                found = [hit.id for hit in hits if hit.id != "8"]
                assert sorted(found) == list("01234567")
    finally:
        writer.join()


def test_saved_vectors_come_back_and_go_on(tmp_path: Path, small_blocks: None) -> None:
    index = VectorIndex("minilm", 3, storage="float16")
    index.add_many(
        [f"é{n}" for n in range(10)],
        RNG.standard_normal((10, 3)),
        partitions=[("ann" if n % 2 else "bob", None) for n in range(10)],
    )
    index.remove("é3")
    index.save(tmp_path / "v", sequence=42)
    again = VectorIndex.load(tmp_path / "v", space="minilm", dimensions=3)
    query = RNG.standard_normal(3)
    assert again.sequence == 42
    assert again.storage == "float16"
    assert again.search(query, 20) == index.search(query, 20)
    assert again.search(query, 20, where=("ann",)) == index.search(query, 20, where=("ann",))
    for each in (index, again):
        each.add("new", query, partition=("ann",))
        each.add("é1", -query, partition=("cid",))
        each.remove("é2")
    assert again.search(query, 20) == index.search(query, 20)
    assert again.search(query, 20)[0].id == "new"
    assert [hit.id for hit in again.search(query, where=("cid",))] == ["é1"]
    again.save(tmp_path / "v", sequence=43)
    assert VectorIndex.load(tmp_path / "v", space="minilm", dimensions=3).search(query, 20) == (
        index.search(query, 20)
    )
    assert (tmp_path / "v" / "vectors.bin").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["vectors.bin"]


def test_an_empty_index_is_saved_too(tmp_path: Path) -> None:
    VectorIndex("toy", 2).save(tmp_path, sequence=1)
    assert len(VectorIndex.load(tmp_path, space="toy", dimensions=2)) == 0


def test_another_space_is_refused(tmp_path: Path) -> None:
    VectorIndex("toy", 2).save(tmp_path)
    for space, dimensions in (("other", 2), ("toy", 3)):
        with pytest.raises(SnapshotError, match="space"):
            VectorIndex.load(tmp_path, space=space, dimensions=dimensions)


def test_damaged_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = VectorIndex("toy", 2)
    index.add_many(["a", "b"], [[1.0, 0.0], [0.0, 1.0]])
    index.save(tmp_path)
    file = tmp_path / "vectors.bin"
    whole = file.read_bytes()
    broken = [whole[:cut] for cut in range(0, len(whole), 7)]
    broken += [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 5)
    ]
    broken += [whole + b"\0", b"SQLite format 3\0" * 40]
    for data in broken:
        file.write_bytes(data)
        with pytest.raises(SnapshotError):
            VectorIndex.load(tmp_path, space="toy", dimensions=2)
    file.unlink()
    with pytest.raises(SnapshotError):
        VectorIndex.load(tmp_path, space="toy", dimensions=2)
    monkeypatch.setattr(vector_rows, "_VERSION", 99)
    index.save(tmp_path)
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="format 99"):
        VectorIndex.load(tmp_path, space="toy", dimensions=2)
