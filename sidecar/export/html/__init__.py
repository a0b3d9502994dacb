"""Documents for a browser, and the HTML that pages are laid out from."""
