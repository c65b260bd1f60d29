"""Whom a client trusts over TLS: the machine's roots, and the authority in a file that it was given.

`exchange` imports it for https addresses only: to a plain server a submit costs no import of ssl.
"""

import ssl

from trainshed.client.errors import ClientError


def client_context(ca: str) -> ssl.SSLContext:
    """Raises ClientError where the file cannot be used."""
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(ca)
        except OSError as error:
            problem = "has no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
            raise ClientError(
                f"TRAINSHED_CA: the file {ca} of the server's authority cannot be used: {problem}; "
                "copy tls/own/ca.pem from the server's home"
            ) from error
    return context


def untrusted(url: str, error: OSError) -> ClientError:
    """What went wrong in a handshake, with what mends it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ClientError(
            f"the certificate of {url} is not trusted: {error.verify_message}. Copy tls/own/ca.pem from the "
            "server's home, or the certificate of your own authority, and set TRAINSHED_CA to that file"
        )
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return ClientError(f"{url} does not speak TLS: write http:// if that is the right server")
    return ClientError(f"{url}: {error}")
