"""What the files of a build folder are called."""

MODEL = "model.onnx"
CONFIG = "build_config.json"
MANIFEST = "build_manifest.json"
ANALYSIS = "analyze_result.json"
EXPORT = "export_metadata.json"
PARTS = "parts.json"
"""What the parts of a composite model are, and how they run together."""
