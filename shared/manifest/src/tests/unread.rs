//! Mistakes in a derivation of the kind `unread`.

use super::{
    kinds::{BASE, refused_example},
    *,
};

#[test]
fn what_is_unread_is_behind_an_attribute_in_the_order_of_the_sort_key() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("unread", from, to, expect);
    let after = "{ sentAt = \"lastReadAt\" }";
    refused(
        after,
        "{ sent = \"lastReadAt\" }",
        &expect![[
            r#"derivation.unread.after.sent: the sort key of Message has no field "sent": there are sentAt, messageId"#
        ]],
    );
    refused(
        after,
        "{ messageId = \"lastReadAt\" }",
        &expect![
            "derivation.unread.after.messageId: the sort key of Message has sentAt before messageId, and Member does not give it: name sentAt here, or pair it in link"
        ],
    );
    refused(
        after,
        "{ sentAt = \"lastRead\" }",
        &expect![[r#"derivation.unread.after.sentAt: Member has no attribute "lastRead": did you mean "lastReadAt"?"#]],
    );
    refused(
        after,
        "{ sentAt = \"lastReadAt\", messageId = \"lastReadAt\" }",
        &expect![[
            r#"derivation.unread.after: give one field of the sort key with one attribute of the target, as in { sentAt = "lastReadAt" }"#
        ]],
    );
    refused(
        &format!("after = {after}\n"),
        "",
        &expect![[
            r#"derivation.unread: after is missing: the field of the sort key and the attribute that counted items are behind, as in { sentAt = "lastReadAt" }"#
        ]],
    );
    refused(
        "limit = 100\n",
        "",
        &expect!["derivation.unread: limit is missing: the greatest number, as in limit = 100"],
    );
    refused("limit = 100", "limit = 0", &expect!["derivation.unread.limit: is 0: it is from 1 to 1000"]);
    refused("limit = 100", "limit = 1001", &expect!["derivation.unread.limit: is 1001: it is from 1 to 1000"]);
    refused(
        "limit = 100",
        "limit = 100\nzero = \"write\"",
        &expect![[r#"derivation.unread.zero: there is no value "write": there are always, absent"#]],
    );
    refused(
        "limit = 100",
        "limit = 100\nwhere = \"attribute_not_exists(deletedAt)\"",
        &expect![
            "derivation.unread.where: the kind unread takes no condition: mirror the items that meet it, and name the mirrors here"
        ],
    );
    refused(
        "\"Member.unread\"",
        "\"Member.lastReadAt\"",
        &expect![
            "derivation.unread.into: Member lists lastReadAt in attributes, so the application writes it: name another attribute, or move it to derived-attributes"
        ],
    );
    refused(
        "\"Member.unread\"",
        "\"Member\"",
        &expect![[
            r#"derivation.unread.into: names no attribute: the attribute that shows the number, as in "Member.unread""#
        ]],
    );
}

#[test]
fn what_is_unread_is_one_range_and_its_targets_are_found() {
    let refused = |from: &str, to: &str, expect: &Expect| refused_example("unread", from, to, expect);
    let link = "link = { roomId = \"roomId\" }";
    refused(
        link,
        "link = { roomId = \"userId\", messageId = \"userId\" }",
        &expect![
            "derivation.unread.link.messageId: is not before sentAt in the key of Message, so the items with one messageId are no range: leave it out"
        ],
    );
    refused(
        link,
        "link = { room = \"roomId\" }",
        &expect![[
            r#"derivation.unread.link.room: the key of Message has no field "room": there are messageId, roomId, sentAt"#
        ]],
    );
    refused(
        link,
        "link = { roomId = \"userId\" }",
        &expect![
            "derivation.unread: a change of Message does not have roomId of Member, by which its Member items would be found: no entity and no index leads to all of them"
        ],
    );
    refused(
        "limit = 100",
        "limit = 100\nfound = \"Membership\"",
        &expect![
            "derivation.unread.found: a change of Message does not have userId of Membership, by which its Member items would be found: no entity and no index leads to all of them"
        ],
    );
    refused(
        "limit = 100",
        "limit = 100\nfound = { index = \"byPost\" }",
        &expect![[r#"derivation.unread.found.index: Member has no key in an index "byPost": there is none"#]],
    );
    let sort = "MSG#{sentAt}#{messageId}";
    refused(
        sort,
        "MSG#{MAX-sentAt:12}#{messageId}",
        &expect![
            "derivation.unread.after.sentAt: MSG#{MAX-sentAt:12}#{messageId} of Message has the greatest sentAt first, so newer items are before the value: mirror them under a sort key without MAX-, and count the mirrors"
        ],
    );
    refused(
        sort,
        "MSG#{sentAt}.{messageId}",
        &expect![
            "derivation.unread.after.sentAt: a value of sentAt may contain the text that ends it in MSG#{sentAt}.{messageId} of Message: write # there"
        ],
    );
    refused(
        "partition-key = \"ROOM#{roomId}\"\nsort-key = \"MSG",
        "partition-key = \"MSG#{id}\"\nsort-key = \"{roomId}#MSG",
        &expect![[
            r#"derivation.unread: nothing gives id of the key of Message: name the attribute of Member with its value (roomId, userId, lastReadAt, unread), as in link = { id = "…" }"#
        ]],
    );
}

#[test]
fn a_number_is_no_text_that_was_read_last() {
    let counted = "limit = 100\n[derivation.messages]\nkind = \"count\"\nfrom = \"Message\"\ninto = \"Member.read\"\nlink = { roomId = \"roomId\", userId = \"roomId\" }";
    let base = BASE.replacen("derived-attributes = [\"unread\"]", "derived-attributes = [\"unread\", \"read\"]", 1);
    let example = crate::kinds::descriptions().into_iter().find(|it| it.name == "unread").unwrap().example;
    let text = format!("{base}{}", example.replacen("limit = 100", counted, 1).replacen("lastReadAt", "read", 1));
    let ManifestError { key, what, .. } = load(&text).map(drop).expect_err("it is refused");
    expect!["derivation.unread.after.sentAt: Member.read shows what messages counts (N), and sentAt in the key of Message takes text (S): name an attribute of text"].assert_eq(&format!("{key}: {what}"));
}

#[test]
fn a_number_may_be_what_was_read_last() {
    let example = crate::kinds::descriptions().into_iter().find(|it| it.name == "unread").unwrap().example;
    let text = format!("{BASE}{example}zero = \"absent\"\n").replace("MSG#{sentAt}", "MSG#{sentAt:12}");
    let (schema, catalogue) = load(&text).unwrap_or_else(|error| panic!("{error}"));
    let derivation = catalogue.derivations().find(|it| it.name == "unread").unwrap();
    let outline = derivation.kind.outline(&schema);
    expect!["those whose sentAt is behind its lastReadAt, up to 100, as unread, absent for zero; roomId is its roomId"]
        .assert_eq(&outline.terms.join(""));
}
