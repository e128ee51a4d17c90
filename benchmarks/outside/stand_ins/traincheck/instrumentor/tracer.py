"""Nothing is traced here."""
