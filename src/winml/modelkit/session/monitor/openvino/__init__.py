"""The traced pass with the openvino package, in a process of its own."""
