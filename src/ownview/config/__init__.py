"""What people may set: settings, where they may be searched, layers and presets."""
