"""What is fetched from the package index: the locks, and models that come as packages."""
