"""Pictures as inline SVG: each answers one question about a result."""
