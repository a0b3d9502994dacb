"""What every test can use."""

pytest_plugins = ["pytester", "tests.contract.plugin"]
