"""What can go wrong between a host and its sidecar."""


class SidecarError(Exception):
    """Anything that a host may want to catch around its sidecar."""


class SidecarStartError(SidecarError):
    """The sidecar did not become ready.

    ``code`` is the code of the sidecar's own fatal line, or one of the launcher's: ``NOT_FOUND``
    (the executable cannot be run), ``EXITED`` (it ended without a word), ``PROTOCOL_VIOLATION``
    (its first line is none of ours), ``READY_TIMEOUT``. ``log_tail`` is the end of its stderr and
    ``exit_code`` its exit status, or None where it had to be killed or never ran.
    """

    def __init__(
        self, code: str, message: str, log_tail: str = "", exit_code: int | None = None
    ) -> None:
        super().__init__(code, message, log_tail, exit_code)
        self.code = code
        self.message = message
        self.log_tail = log_tail
        self.exit_code = exit_code

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        if self.exit_code is not None:
            text += f" (exit status {self.exit_code})"
        if self.log_tail:
            text += f"\n--- end of the sidecar's log ---\n{self.log_tail.rstrip()}"
        return text


class SidecarTimeoutError(SidecarStartError):
    """The sidecar was not ready in time; it has been ended. ``code`` is ``READY_TIMEOUT``."""


class SidecarUnavailableError(SidecarError):
    """No sidecar serves: it was stopped, crashed for good, or did not come back in time."""


class SidecarConnectionError(SidecarError):
    """The connection broke before the whole answer was there. The request may have had effect."""


class SidecarRequestError(SidecarError):
    """The sidecar answered with an error status.

    ``code``, ``message`` and ``details`` come from its error object; ``code`` is empty where the
    body holds none.
    """

    def __init__(self, status: int, code: str, message: str, details: object = None) -> None:
        super().__init__(status, code, message, details)
        self.status = status
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}"
