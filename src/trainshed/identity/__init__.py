"""Who may come in: a token in a file, an open door for loopback, and a look at where a request comes from."""

from trainshed.identity.open import NoAuthentication
from trainshed.identity.origin import foreign_request
from trainshed.identity.token import TokenFile

__all__ = ["NoAuthentication", "TokenFile", "foreign_request"]
