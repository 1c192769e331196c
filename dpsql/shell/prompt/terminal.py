"""Prompt with colours, completion and multi-line editing, by prompt_toolkit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History as ToolkitHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import DynamicLexer, Lexer, PygmentsLexer, SimpleLexer
from prompt_toolkit.styles import Style

from dpsql.shell.prompt.completion import Completer as Words
from dpsql.shell.prompt.history import History

_STYLE = Style.from_dict(
    {
        "bottom-toolbar": "noreverse #888888",
        "prompt": "bold",
        "pygments.keyword": "ansiblue bold",
        "pygments.name.builtin": "ansiblue",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.comment": "#888888 italic",
    }
)


class Terminal:
    """Reads text until it is complete: `is_whole` decides whether Enter ends the text or begins a new line; `continued`
    returns the sign before each further line; `toolbar` the line below."""

    def __init__(
        self,
        history: History,
        words: Words,
        is_whole: Callable[[str], bool],
        continued: Callable[[str], str],
        toolbar: Callable[[], str],
    ) -> None:
        self._continued = continued
        self._toolbar = toolbar
        self._below = ""
        self._words = words
        self._colours: Lexer | None = None
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            history=_PromptHistory(history),
            completer=_Completions(words),
            complete_while_typing=True,
            lexer=DynamicLexer(self._lexer),
            style=_STYLE,
            include_default_pygments_style=False,
            key_bindings=_keys(is_whole),
            prompt_continuation=self._before_line,
            bottom_toolbar=lambda: self._below,
            reserve_space_for_menu=6,
            editing_mode=EditingMode.EMACS,
            enable_suspend=True,
        )
        self._session.app.after_render += self._shown

    def read(self, sign: str) -> str:
        """Read a text after the prompt `sign`. Raises EOFError and KeyboardInterrupt."""
        self._below = self._toolbar()  # once for each statement: it may read the ledger's file
        return self._session.prompt([("class:prompt", sign)])

    def remember(self, statement: str) -> None:
        """Do nothing: the toolkit has stored the statement."""

    def _shown(self, app: Application[str]) -> None:
        """After the first rendering, load the modules that the first keys need."""
        app.after_render -= self._shown
        Thread(target=self._get_ready, daemon=True).start()

    def _get_ready(self) -> None:
        self._colouring()
        self._words.get_ready()

    def _lexer(self) -> Lexer | None:
        """Return None for an empty text: loading Pygments takes a while."""
        return self._colouring() if self._session.default_buffer.text else None

    def _colouring(self) -> Lexer:
        if self._colours is None:
            try:
                from pygments.lexers.sql import SqlLexer
            except ImportError:  # not installed: no colours
                self._colours = SimpleLexer()
            else:
                self._colours = PygmentsLexer(SqlLexer)
        return self._colours

    def _before_line(self, _width: int, line: int, wrapped: int) -> StyleAndTextTuples:
        text = self._session.default_buffer.text
        ahead = "\n".join(text.split("\n")[:line])
        return [("class:prompt", "" if wrapped else self._continued(ahead))]


def _keys(is_whole: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


class _Completions(Completer):
    """Completions: while typing only for a started word, on Tab everywhere."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not complete_event.completion_requested and not before[-1:].isalnum() and before[-1:] not in '"_-.':
            return
        for each in self._words.candidates(before, document.text_after_cursor):
            yield Completion(each.text, start_position=-each.length, display_meta=each.kind)


class _PromptHistory(ToolkitHistory):
    """Earlier statements, newest first, as the toolkit requires."""

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._history.statements)

    def store_string(self, string: str) -> None:
        self._history.add(string)
