"""Small models that experiments of findings are made of, written node by node: no exporter is needed."""
