"""What brings documents in step with a folder."""

from collections import Counter

from engram.core.text.document_manifest import HeldDocument, ListedDocument, Move, Steps, compare_documents

HR = ("group:hr",)


def compare(listed: list[ListedDocument], held: list[HeldDocument], earlier: tuple[str, ...] = ()) -> Steps:
    return compare_documents("notes", earlier, listed, held, Counter(one.folder for one in held if one.folder))


def test_new_changed_moved_and_deleted_documents_are_told_apart() -> None:
    listed = [
        ListedDocument("same.md", "s"),
        ListedDocument("other.md", "o2"),
        ListedDocument("new.md", "n"),
        ListedDocument("deep/move.md", "m"),
        ListedDocument("unreadable.md", None),
    ]
    held = [
        HeldDocument("same.md", "notes", "s"),
        HeldDocument("other.md", "notes", "o1"),
        HeldDocument("move.md", "notes", "m"),
        HeldDocument("gone.md", "notes", "g"),
        HeldDocument("unreadable.md", "notes", "u"),
    ]
    assert compare(listed, held) == Steps(
        upload=("new.md", "other.md"),
        moved=(Move("move.md", "deep/move.md"),),
        changed=(),
        delete=("gone.md",),
        folders=(),
    )


def test_a_document_whose_passages_are_not_all_written_is_uploaded() -> None:
    assert compare([ListedDocument("a.md", "a")], [HeldDocument("a.md", "notes", None)]).upload == ("a.md",)


def test_equal_files_move_by_their_names_first_and_each_once() -> None:
    listed = [ListedDocument(name, "empty") for name in ("new/a.md", "new/b.md", "new/c.md", "kept.md")]
    held = [HeldDocument(name, "notes", "empty") for name in ("old/b.md", "old/z.md", "kept.md")]
    steps = compare(listed, held)
    assert steps.moved == (Move("old/z.md", "new/a.md"), Move("old/b.md", "new/b.md"))
    assert (steps.upload, steps.delete) == (("new/c.md",), ())


def test_only_a_folder_and_its_earlier_names_lose_documents() -> None:
    listed = [ListedDocument("a.md", "a")]
    held = [HeldDocument("a.md", "old", "a"), HeldDocument("b.md", "old", "b"), HeldDocument("c.md", None, "c")]
    steps = compare(listed, held)
    assert (steps.changed, steps.delete, steps.folders) == (("a.md",), (), ("old",))
    steps = compare(listed, held, ("old",))
    assert (steps.changed, steps.delete, steps.folders) == (("a.md",), ("b.md",), ())


def test_a_folder_is_an_earlier_one_if_half_of_it_is_listed_by_source_or_digest() -> None:
    listed = [ListedDocument("new/a.md", "a"), ListedDocument("b.md", "b2"), ListedDocument("c.md", "c")]
    renamed = [HeldDocument(f"old/{name}.md", "old", name) for name in "axyz"]
    assert compare(listed, [*renamed, HeldDocument("b.md", "old", "b")]).folders == ()
    assert compare(listed, [*renamed[:3], HeldDocument("b.md", "old", "b")]).folders == ("old",)


def test_readers_are_compared_where_they_are_named() -> None:
    held = [
        HeldDocument("a.md", "notes", "a", frozenset({None})),
        HeldDocument("b.md", "notes", "b", frozenset({HR, None})),
        HeldDocument("c.md", "notes", "c", frozenset({HR})),
    ]
    digests = {"a.md": "a", "b.md": "b", "c.md": "c"}
    assert compare([ListedDocument(name, digest) for name, digest in digests.items()], held).changed == ()
    for_hr = [ListedDocument(name, digest, True, HR) for name, digest in digests.items()]
    assert compare(for_hr, held).changed == ("a.md", "b.md")
    for_all = [ListedDocument(name, digest, True, None) for name, digest in digests.items()]
    assert compare(for_all, held).changed == ("b.md", "c.md")
