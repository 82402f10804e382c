"""Values to text: tables for people. Never prints."""
