"""What the project is kept with: its lock of hashes, its bill of materials, the audit of known faults."""
