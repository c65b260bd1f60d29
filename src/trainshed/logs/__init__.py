"""Keeps what replicas print: plain files they write themselves, and small indexes that say when."""
