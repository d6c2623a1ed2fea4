"""The web: what a URL means, which addresses may be asked, and what a page says."""
