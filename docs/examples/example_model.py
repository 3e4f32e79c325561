"""The model of the examples: a script without a network, or any OpenAI-compatible server."""

from __future__ import annotations

import argparse
import os

from memsheaf.models import ChatModel, OpenAICompatible, ScriptedModel
from memsheaf.models.scripted import Script


def example_model(script: Script) -> ChatModel:
    """The scripted model, or the one that the command line names.

    `--base-url http://localhost:8000/v1 --model NAME` asks a server; its key comes from
    `OPENAI_API_KEY`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url")
    parser.add_argument("--model")
    chosen = parser.parse_args()
    if chosen.base_url and chosen.model:
        key = os.environ.get("OPENAI_API_KEY")
        return OpenAICompatible(chosen.base_url, chosen.model, api_key=key)
    return ScriptedModel(script)
