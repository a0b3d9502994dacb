"""A running application with an empty vault; see :mod:`tests.vault.conftest`."""

from tests.vault.conftest import vault

__all__ = ["vault"]
