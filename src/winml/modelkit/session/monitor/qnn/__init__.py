"""What the QNN EP and the QAIRT tools write: profiling CSV, HTP analysis summary."""
