"""What of an item can be found."""

from memsheaf.sessionsearch import Item
from memsheaf.sessionsearch.content import content_of


def test_an_id_that_ties_a_result_to_its_call_is_not_found() -> None:
    call = Item(
        "c", 0, "tool_call", "shell", data={"name": "shell", "call_id": "call_9f", "id": "item_7"}
    )
    assert content_of(call) == "shell"


def test_of_attachments_the_names_are_found_and_nothing_else() -> None:
    files = [{"kind": "image", "name": "harbour.png"}, {"kind": "file"}, "odd", {"name": 7}]
    assert content_of(Item("c", 0, "message", "Look.", data={"attachments": files})) == (
        "Look.\nharbour.png"
    )
    assert content_of(Item("c", 0, "message", data={"attachments": files})) == "harbour.png"
    assert content_of(Item("c", 0, "message", "Look.", data={"attachments": "none"})) == "Look."


def test_arguments_are_found_with_their_names() -> None:
    data = {"name": "find", "arguments": {"id": 7, "where": ["hall", {"door": True}]}}
    assert content_of(Item("c", 0, "tool_call", data=data)) == "find\nid 7 where hall door"
