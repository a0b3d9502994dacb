"""What stands in a document beside its text: images, diagrams, plots and formulas."""
