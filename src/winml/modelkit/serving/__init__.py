"""Using what was built: one prediction in words (`winml run`), and answers over HTTP (`winml serve`)."""
