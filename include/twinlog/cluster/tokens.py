"""OAUTHBEARER tokens: read from a file, or asked of an identity provider with client credentials.

A token is used again until shortly before it expires; a file is read anew each time, since whoever rotates
the token rewrites it. Errors name the endpoint and the provider's answer, never the token or a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlog.cluster.secrets import remember
from twinlog.cluster.security import Token
from twinlog.errors import AuthenticationError, SecretError

_TIMEOUT_S = 10.0
_EARLY_S = 30.0
"""How long before its end a token counts as expired: clocks differ, and a handshake takes time."""
_UNKNOWN_LIFETIME_S = 300.0


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token and when it ends, in seconds since the epoch."""

    value: str
    expires_at_s: float

    def __repr__(self) -> str:
        return f"IssuedToken(expires_at_s={self.expires_at_s})"


class TokenSource:
    """Where both client libraries get their token; safe to ask from several threads."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._issued: IssuedToken | None = None
        self._lock = threading.Lock()

    def current(self) -> IssuedToken:
        with self._lock:
            if self._token.in_file:
                return self._from_file()
            if self._issued is None or self._issued.expires_at_s - _EARLY_S <= time.time():
                self._issued = self._from_provider()
            return self._issued

    def _from_file(self) -> IssuedToken:
        return _issued(token_file(self._token), _UNKNOWN_LIFETIME_S)

    def _from_provider(self) -> IssuedToken:
        url = self._token.endpoint_url
        form = {"grant_type": "client_credentials"}
        if self._token.scope:
            form["scope"] = self._token.scope
        credentials = f"{self._token.client_id}:{self._token.client_secret}".encode()
        request = urllib.request.Request(  # noqa: S310 - read_security admits http and https only
            url,
            data=urllib.parse.urlencode(form).encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(credentials).decode(),
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                body = json.load(answer)
            return _issued(str(body["access_token"]), float(body.get("expires_in", _UNKNOWN_LIFETIME_S)))
        except urllib.error.HTTPError as error:
            with error:
                code = error.code
            raise AuthenticationError(
                f"the identity provider at {url} refused the client credentials (HTTP {code})"
            ) from None
        except (urllib.error.URLError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            raise AuthenticationError(f"the identity provider at {url} could not be reached: {reason}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise AuthenticationError(
                f"the identity provider at {url} did not answer with a JSON object that holds access_token"
            ) from None


def token_file(token: Token) -> str:
    """What the token's file holds now."""
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(token.endpoint_url).path))
    try:
        value = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise SecretError(f"the token file {path} cannot be read; expected a token in plain ASCII") from None
    remember(value)
    return value


def subject_in(token: str) -> str | None:
    """Whom a JWT is about; None for other tokens, which are opaque to us."""
    subject = _claims(token).get("sub")
    return subject if isinstance(subject, str) else None


def _issued(value: str, lifetime_s: float) -> IssuedToken:
    remember(value)
    return IssuedToken(value, _expiry_in(value) or time.time() + lifetime_s)


def _expiry_in(token: str) -> float | None:
    """The `exp` claim, where the token is a JWT."""
    try:
        return float(_claims(token)["exp"])
    except (ValueError, KeyError, TypeError):
        return None


def _claims(token: str) -> dict[str, Any]:
    """What a JWT says; nothing where the token is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
