"""An agent that remembers: facts by its own tools, and what was said, from one run to the next."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from example_model import example_model

from memsheaf.agent import AgentMemory, run_turn
from memsheaf.models import ToolCall
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import open_sessions
from memsheaf.stack import MemoryStack, Scope


def main() -> None:
    """Tell something in one conversation, and ask for it in another."""
    model = example_model(
        [
            ToolCall("1", "memory_remember", '{"content": "The deploy window is Tuesday 14:00"}'),
            "I will remember that.",
            "On Tuesday at 14:00.",
        ]
    )
    with TemporaryDirectory() as folder:
        for conversation, words in [
            ("monday", "Our deploy window is Tuesday 14:00, please remember that."),
            ("friday", "When is our deploy window?"),
        ]:
            # Everything is opened anew, as after a restart.
            with (
                MemoryStack([LocalStore(Path(folder) / "memories")]) as stack,
                open_sessions(Path(folder) / "sessions") as sessions,
                AgentMemory(stack=stack, sessions=sessions, scope=Scope(user_id="mira")) as memory,
            ):
                result = run_turn(words, memory=memory, model=model, conversation=conversation)
                print(f"user: {words}\nagent: {result.text}")
                print(f"  ({len(result.injection.hits)} memories injected)")
                found = sessions.search("deploy window", scope=Scope(user_id="mira"))
                print(f"  (said before: {', '.join(hit.id for hit in found)})")


if __name__ == "__main__":
    main()
