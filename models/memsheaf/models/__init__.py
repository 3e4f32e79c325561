"""Clients of chat models: any OpenAI-compatible server, Anthropic, Ollama, and a scripted double.

Layer 0: knows nothing of memories. Importing it costs no third-party import.
"""

from ._http import HttpSettings
from .anthropic import AnthropicMessages
from .cancel import CancelToken
from .chain import ModelChain, resolve
from .chat import (
    ChatModel,
    ChatOptions,
    ChatReply,
    ChatRequest,
    Done,
    Message,
    StreamEvent,
    TextDelta,
    ToolCall,
    ToolCallReady,
    Usage,
)
from .errors import (
    AllModelsFailed,
    BadReply,
    BadRequest,
    JsonNotFound,
    MissingExtra,
    ModelBusy,
    ModelCancelled,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
)
from .jsontext import extract_json
from .ollama import Ollama
from .openai import OpenAICompatible
from .scripted import ScriptedModel

__all__ = [
    "AllModelsFailed",
    "AnthropicMessages",
    "BadReply",
    "BadRequest",
    "CancelToken",
    "ChatModel",
    "ChatOptions",
    "ChatReply",
    "ChatRequest",
    "Done",
    "HttpSettings",
    "JsonNotFound",
    "Message",
    "MissingExtra",
    "ModelBusy",
    "ModelCancelled",
    "ModelChain",
    "ModelError",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "NoModel",
    "Ollama",
    "OpenAICompatible",
    "ScriptedModel",
    "StreamEvent",
    "TextDelta",
    "ToolCall",
    "ToolCallReady",
    "Usage",
    "extract_json",
    "resolve",
]
