"""How a program is recorded: the settings of ``vramscope run`` and of ``vramscope.start()``."""

from __future__ import annotations

SEPARATOR = "\x1f"


class Options:
    """The settings of a recording. They travel to the program's process as one text in the environment."""

    def __init__(self) -> None:
        #: Directory that recordings are put into.
        self.out = ".vramscope"
        #: Directory of this very recording, where the launcher has chosen it already.
        self.directory = ""
        #: Process that was launched; 0 where the program began the recording itself.
        self.pid = 0
        #: What was typed, for people.
        self.command = ""
        #: Steps in a window of history.
        self.steps = 60
        #: Seconds that a window lasts at most, once it has a few steps.
        self.seconds = 30
        #: Events of history that are kept.
        self.max_entries = 200_000
        #: ``python``, ``all`` or ``none``.
        self.stacks = "python"
        #: Whether a window is recorded from the start on.
        self.first_window = True
        #: Whether history is recorded all the time.
        self.always = False
        #: Seconds between windows that are recorded for no reason; 0 for none.
        self.every_s = 0
        #: Whether holders are looked for.
        self.holders = True
        #: Bytes on the disk that one process may take.
        self.max_disk_bytes = 2 << 30
        #: Whether Python processes that the program starts are recorded too.
        self.children = False
        #: Whether nothing is said on the standard error.
        self.quiet = False

    def set(self, name: str, text: str) -> None:
        """Take one setting from its text; a name that is not known is passed over."""
        now = getattr(self, name, None)
        if isinstance(now, bool):
            setattr(self, name, text == "yes")
        elif isinstance(now, int):
            setattr(self, name, int(text))
        elif isinstance(now, str):
            setattr(self, name, text)

    def to_text(self) -> str:
        """All settings as one text that can be a variable of the environment."""
        values = ((name, ("no", "yes")[value] if isinstance(value, bool) else value) for name, value in vars(self).items())
        return SEPARATOR.join(f"{name}={value}" for name, value in values)

    @classmethod
    def from_text(cls, text: str) -> Options:
        """The settings that :meth:`to_text` wrote."""
        options = cls()
        for line in text.split(SEPARATOR):
            name, _, value = line.partition("=")
            options.set(name, value)
        return options
