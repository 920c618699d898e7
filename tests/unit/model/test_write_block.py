from __future__ import annotations

from twinlog.model.acls import Acl, Pattern
from twinlog.model.write_block import write_block

US = "User:mirror"


def allowed(who: str, operation: str, name: str, pattern: Pattern = Pattern.LITERAL) -> Acl:
    return Acl("topic", name, pattern, who, "*", operation, "ALLOW")


def denied(who: str, name: str) -> Acl:
    return Acl("topic", name, Pattern.LITERAL, who, "*", "WRITE", "DENY")


def test_everybody_who_may_write_is_denied_but_us() -> None:
    acls = [
        allowed("User:a", "WRITE", "orders"),
        allowed("User:b", "ALL", "or", Pattern.PREFIXED),
        allowed("User:c", "READ", "orders"),
        allowed("User:d", "WRITE", "other"),
        allowed(US, "WRITE", "*"),
    ]
    found = write_block(acls, ["orders"], US, we_write_there=True)
    assert found.denials == (denied("User:a", "orders"), denied("User:b", "orders"))
    assert found.open == ()


def test_everybody_is_denied_by_name_only_where_we_do_not_write() -> None:
    acls = [allowed("User:*", "WRITE", "orders"), allowed("User:a", "WRITE", "orders")]
    alone = write_block(acls, ["orders"], US, we_write_there=False)
    assert alone.denials == (denied("User:*", "orders"), denied("User:a", "orders"))
    both = write_block(acls, ["orders"], US, we_write_there=True)
    assert both.denials == (denied("User:a", "orders"),)
    assert both.open == (
        "everybody is allowed to write to orders, so a denial to everybody would hit the flow that writes there from "
        "now on",
    )


def test_a_topic_that_names_nobody_is_told_and_left_alone() -> None:
    found = write_block([allowed("User:a", "READ", "b")], list("abcde"), US, we_write_there=False)
    assert found.denials == ()
    assert found.open == ("no ACL says who may write to a, b, c and 2 more, so nobody is denied it",)
