"""The one ledger of model calls, whoever makes them."""
