"""Who may take part: certificates, invitations, keys."""
