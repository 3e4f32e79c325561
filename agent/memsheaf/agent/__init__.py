"""The agent's turn: injection of memories, tools, reflection, and the turn as a whole."""

from .cache_report import CacheReport, cache_report
from .context import MemoryContext, context
from .definitions import Definition, SchemaForm
from .gate import TRIVIAL_PHRASES, TrivialGate, is_trivial
from .host_tools import HostTool, ToolOutcome
from .inject import MIN_RELEVANCE, Injection, ainject, inject
from .ledger import BlockLedger
from .memory import AgentMemory
from .policy import Access, Policy, TurnOrigin
from .recording import items_of, messages_of
from .reflection import ReflectionReport, ReflectionSettings, reflect, undo
from .reflection_operations import Applied
from .reflector import Reflector
from .running import arun_turn, astream_turn, run_turn, stream_turn
from .scrub import Scrubber, strip_blocks, strip_messages, strip_value
from .system import (
    ainject_system,
    ainject_system_value,
    inject_system,
    inject_system_value,
)
from .tokens import count_tokens, estimate_tokens
from .tools import MemoryTools
from .trim import Trimmed, trim_messages
from .turn_log import Recorded
from .turn_types import (
    Step,
    ToolsDone,
    TurnDone,
    TurnEvent,
    TurnHooks,
    TurnOptions,
    TurnResult,
    TurnState,
)

__all__ = [
    "MIN_RELEVANCE",
    "TRIVIAL_PHRASES",
    "Access",
    "AgentMemory",
    "Applied",
    "BlockLedger",
    "CacheReport",
    "Definition",
    "HostTool",
    "Injection",
    "MemoryContext",
    "MemoryTools",
    "Policy",
    "Recorded",
    "ReflectionReport",
    "ReflectionSettings",
    "Reflector",
    "SchemaForm",
    "Scrubber",
    "Step",
    "ToolOutcome",
    "ToolsDone",
    "Trimmed",
    "TrivialGate",
    "TurnDone",
    "TurnEvent",
    "TurnHooks",
    "TurnOptions",
    "TurnOrigin",
    "TurnResult",
    "TurnState",
    "ainject",
    "ainject_system",
    "ainject_system_value",
    "arun_turn",
    "astream_turn",
    "cache_report",
    "context",
    "count_tokens",
    "estimate_tokens",
    "inject",
    "inject_system",
    "inject_system_value",
    "is_trivial",
    "items_of",
    "messages_of",
    "reflect",
    "run_turn",
    "stream_turn",
    "strip_blocks",
    "strip_messages",
    "strip_value",
    "trim_messages",
    "undo",
]
