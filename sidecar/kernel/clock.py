"""Time as the wire shows it."""

from datetime import UTC, date, datetime, timedelta


def format_utc(moment: datetime) -> str:
    """Return *moment* as UTC ISO 8601 with milliseconds and a trailing ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_now() -> str:
    """Return the current time, for example ``2026-08-31T10:30:00.123Z``."""
    return format_utc(datetime.now(UTC))


def utc_in(seconds: float) -> str:
    """Return the time *seconds* from now; negative values lie in the past."""
    return format_utc(datetime.now(UTC) + timedelta(seconds=seconds))


def parse_utc(text: str) -> datetime:
    """Return the moment that :func:`utc_now` wrote as *text*."""
    return datetime.fromisoformat(text)


def local_today() -> date:
    """Return the day that it is where this machine stands."""
    return datetime.now(UTC).astimezone().date()
