"""What a paper prints: tables, figures, references."""
