"""Who may come in and what they may do: accounts, roles, permissions, tokens and the audit log."""
