"""Engines that know nothing of memories: text analysis, BM25, vectors."""

from .analysis import Analyzer, TextAnalyzer, get_analyzer, register_analyzer, terms

__all__ = ["Analyzer", "TextAnalyzer", "get_analyzer", "register_analyzer", "terms"]
