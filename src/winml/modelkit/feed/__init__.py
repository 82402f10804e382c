"""Where artifacts are published and fetched from: folders, OCI registries, Azure Artifacts."""
