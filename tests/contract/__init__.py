"""The contract as rows, and the check that each row has a test where a domain is complete."""
