"""The user model: learned in the background from what a user says, and injected with its turn."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from example_model import example_model

from memsheaf.agent import AgentMemory, run_turn
from memsheaf.providers.local import LocalStore
from memsheaf.sessionsearch import open_sessions
from memsheaf.stack import MemoryStack, Scope
from memsheaf.usermodel import UserModel


def main() -> None:
    """Say something about yourself, and see what is known of you."""
    model = example_model(["Nice to meet you, Sam!", "Noted.", "You like short answers."])
    with (
        TemporaryDirectory() as folder,
        MemoryStack([LocalStore()], scope=Scope(user_id="sam")) as stack,
        open_sessions(Path(folder) / "sessions") as sessions,
        UserModel(Path(folder) / "profiles") as users,
        AgentMemory(stack=stack, sessions=sessions, user_model=users) as memory,
    ):
        for words in [
            "Call me Sam, not Samuel. I live in Berlin and I prefer short answers.",
            "I moved from Berlin to Lisbon last month.",
        ]:
            run_turn(words, memory=memory, model=model, conversation="hello")
        users.refresh("sam")  # done in the background by itself, a little later
        for line in users.profile("sam"):
            state = "now" if line.is_current else "before"
            print(f"{state}: {line.text} (from {', '.join(line.sources)})")
        result = run_turn(
            "What do you know about my answers?", memory=memory, model=model, conversation="next"
        )
        print("injected:", result.injection.block is not None)


if __name__ == "__main__":
    main()
