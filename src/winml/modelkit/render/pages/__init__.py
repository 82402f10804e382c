"""Reports: what a run showed, as a page of pictures and tables. One module per kind of run."""
