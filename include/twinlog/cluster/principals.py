"""Who a cluster takes us for, as far as our own settings tell: it is who needs the permissions that are missing.

A broker may name certificates and tokens otherwise (`ssl.principal.mapping.rules`, `sasl.oauthbearer.sub.claim.name`);
these are the names that it gives unless it is told to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twinlog.cluster.certificate_subject import subject_of
from twinlog.cluster.security import Password, Security, Tls, Token, read_security
from twinlog.cluster.tokens import subject_in, token_file
from twinlog.errors import SecretError

ANONYMOUS = "User:ANONYMOUS"
"""Who everybody is to a cluster that asks for no names."""
UNKNOWN = "the principal of this client"


def principal_of(settings: Mapping[str, str]) -> str:
    """The principal of whoever connects with these client properties, or words for it where they do not tell."""
    security = read_security(settings)
    if isinstance(security.sasl, Password):
        return f"User:{security.sasl.username}"
    name = _subject(security)
    if name is not None:
        return f"User:{name}"
    if isinstance(security.sasl, Token) and security.sasl.client_id is not None:
        return f"the principal of client {security.sasl.client_id}"
    shows_nothing = security.sasl is None and (security.tls is None or _shown(security.tls) is None)
    return ANONYMOUS if shows_nothing else UNKNOWN


def _subject(security: Security) -> str | None:
    if isinstance(security.sasl, Token):
        return _of_token(security.sasl)
    if security.tls is None:
        return None
    shown = _shown(security.tls)
    return None if shown is None else subject_of(shown)


def _of_token(token: Token) -> str | None:
    if not token.in_file:
        return None
    try:
        return subject_in(token_file(token))
    except SecretError:
        # Whoever connects with it is told so; here it only has no name.
        return None


def _shown(tls: Tls) -> str | None:
    """The certificate that a broker is shown, as PEM; empty where its file can't be read."""
    if tls.certificate_file is None:
        return tls.certificate_pem
    try:
        return Path(tls.certificate_file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        # As above: whoever connects is told so.
        return ""
