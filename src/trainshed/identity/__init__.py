"""Authentication: a token in a file, none for loopback with `--no-auth`, and checks of Host and Origin."""

from trainshed.identity.open import NoAuthentication
from trainshed.identity.origin import foreign_request
from trainshed.identity.token import TokenFile

__all__ = ["NoAuthentication", "TokenFile", "foreign_request"]
