"""Several agents and users on one stack: apart by scope, shared by choice."""

from __future__ import annotations

from example_model import example_model

from memsheaf.agent import AgentMemory, TurnOptions, run_turn
from memsheaf.models import ToolCall
from memsheaf.providers.local import LocalStore
from memsheaf.stack import MemoryStack, Scope


def main() -> None:
    """A cook and a guide serve Mira; Noor's memories are nobody's business."""
    model = example_model(
        [
            ToolCall("1", "memory_remember", '{"content": "Mira eats no nuts"}'),
            "Noted.",
            "She eats no nuts.",
        ]
    )
    with MemoryStack([LocalStore()]) as stack:
        cook = AgentMemory(stack=stack, scope=Scope(user_id="mira", agent_id="cook"))
        guide = AgentMemory(stack=stack, scope=Scope(user_id="mira", agent_id="guide"))
        shared = AgentMemory(stack=stack, scope=Scope(user_id="mira"))
        noor = AgentMemory(stack=stack, scope=Scope(user_id="noor"))
        run_turn("I eat no nuts.", memory=cook, model=model, conversation="kitchen")
        for name, memory in [
            ("cook", cook),
            ("guide", guide),
            ("any agent of Mira's", shared),
            ("any agent of Noor's", noor),
        ]:
            found = memory.tools().call("memory_recall", {"query": "nuts"})
            print(f"{name}: {[one['content'] for one in found['memories']]}")
        # A sub-agent may read what its principal knows, and writes nothing by default.
        task = TurnOptions(origin="sub_agent")
        result = run_turn(
            "What does Mira not eat? Any nuts?",
            memory=shared,
            model=model,
            conversation="errand",
            options=task,
        )
        print(f"sub-agent: {result.text}")
        print(f"its tools: {shared.tools('sub_agent').names}")


if __name__ == "__main__":
    main()
