"""Packages for applications: gates over evidence, the manifest, the writer, the loader and sample programs."""
