"""Certificates: those the home makes, pairs of files that others replace, and whom this machine trusts."""
