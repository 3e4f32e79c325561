"""Reflection: after a run a model keeps the memories up to date, and it can be taken back."""

from __future__ import annotations

import json

from example_model import example_model

from memsheaf.agent import AgentMemory, ReflectionSettings, Reflector
from memsheaf.models import ChatRequest
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope


def reflect(request: ChatRequest) -> str:
    """What a real model would say: the home has changed, and there is a new fact."""
    shown = json.loads(str(request.messages[1]["content"]))["memories"]
    home = next(memory["id"] for memory in shown if "lives in" in memory["content"])
    return json.dumps(
        [
            {"action": "update", "id": home, "content": "Mira lives in Lisbon"},
            {"action": "remember", "content": "Mira's cello is called Otto", "kind": "fact"},
        ]
    )


def main() -> None:
    """Reflect on a conversation, look at it, and take it back."""
    with MemoryStack([LocalStore()], scope=Scope(user_id="mira")) as stack:
        stack.store("Mira lives in Berlin")
        model, settings = example_model(reflect), ReflectionSettings(every=1)
        with (
            Reflector(stack, model, settings=settings) as reflector,
            AgentMemory(stack=stack, reflector=reflector) as memory,
        ):
            memory.after_response(
                [
                    {"role": "user", "content": "I moved to Lisbon, and Otto, my cello, too."},
                    {"role": "assistant", "content": "Enjoy the light there!"},
                ],
                conversation="c1",
            )
            memory.flush()
            (report,) = reflector.reports
            for operation in report.operations:
                print(operation.action, operation.done, operation.after and operation.after.content)
            print(sorted(record.content for record in stack.list()))
            reflector.undo(report)
            print(sorted(record.content for record in stack.list()))


if __name__ == "__main__":
    main()
