from __future__ import annotations

import pytest

from twinlog.cluster.jaas import parse_jaas
from twinlog.errors import ConfigurationError

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "family", "options"),
    [
        (
            f'{SCRAM} required username="mirror" password="s3cret";',
            "SCRAM",
            {"username": "mirror", "password": "s3cret"},
        ),
        (
            f'{SCRAM} required username="a" password="with \\"quotes\\" and ; and \\\\";',
            "SCRAM",
            {"username": "a", "password": 'with "quotes" and ; and \\'},
        ),
        (
            "org.apache.kafka.common.security.plain.PlainLoginModule REQUIRED\n  username='u'\n  password=p=1 ;\n",
            "PLAIN",
            {"username": "u", "password": "p=1"},
        ),
        (
            'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="c" '
            'clientSecret="s" extension_logicalCluster="lkc-1";',
            "OAUTHBEARER",
            {"clientId": "c", "clientSecret": "s", "extension_logicalCluster": "lkc-1"},
        ),
    ],
)
def test_logins_of_kafkas_own_modules(text: str, family: str, options: dict[str, str]) -> None:
    login = parse_jaas(text)

    assert (login.family, dict(login.options)) == (family, options)
    assert repr(login) == f"JaasLogin({family}, options {sorted(options)})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;", "Krb5LoginModule, which needs Java"),
        (f'{SCRAM} required username="u" password="hush"', "with its semicolon"),
        (f'{SCRAM} username="u" password="hush";', "must read"),
        (f'{SCRAM} required username="u" password="hush', "cannot be read after option 'username'"),
        (f'{SCRAM} required password="hush"; {SCRAM} required password="hush";', "more than one login"),
        ("", "must read"),
    ],
)
def test_what_cannot_be_read_is_named_without_its_values(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as error:
        parse_jaas(text)
    assert "hush" not in str(error.value)
