//! The price of a change for what the first or the last of some items decides, for what is unread, and for counts into each
//! member of a list.

use engine::ledger::LedgerKind;
use expect_test::expect;

use crate::cost::Bed;

const MANIFEST: &str = r##"
[table]
partition-key = "pk"
sort-key = "sk"
type = "EntityType"

[entity.Product]
partition-key = "PRODUCT#{productId}"
sort-key = "PRODUCT"
derived-attributes = ["lowestPrice"]

[entity.Offer]
partition-key = "OFFER#{offerId}"
sort-key = "OFFER"
attributes = ["productId", "price", "ended"]

[entity.Message]
partition-key = "ROOM#{room}"
sort-key = "MSG#{sentAt}"

[entity.Member]
partition-key = "ROOM#{room}"
sort-key = "MEMBER#{user}"
attributes = ["lastReadAt"]
derived-attributes = ["unread"]

[derivation.cheapest]
kind = "extreme"
from = "Offer"
into = "Product.lowestPrice"
link = { productId = "productId" }
min = "price"
where = "ended <> 'x'"

[derivation.unread]
kind = "unread"
from = "Message"
into = "Member.unread"
link = { room = "room" }
after = { sentAt = "lastReadAt" }
limit = 100
"##;

#[tokio::test]
async fn an_entry_is_a_write_and_a_message_is_one_for_each_member() {
    let (schema, catalogue) = manifest::load(MANIFEST).unwrap();
    let mut bed = Bed::of(LedgerKind::Watermarks, schema, catalogue);
    let mut found = String::new();
    for (what, items) in [
        ("a product", &["PRODUCT#p / PRODUCT : Product"][..]),
        ("its first offer", &["OFFER#a / OFFER : Offer productId=p price=N:15"]),
        ("a dearer one", &["OFFER#b / OFFER : Offer productId=p price=N:20"]),
        ("a cheaper one", &["OFFER#c / OFFER : Offer productId=p price=N:9"]),
        ("a change of the dearer one", &["OFFER#b / OFFER : Offer productId=p price=N:21"]),
        ("the end of the cheaper one", &["OFFER#c / OFFER : Offer productId=p price=N:9 ended=x"]),
        (
            "three members",
            &[
                "ROOM#r / MEMBER#ann : Member lastReadAt=2024-01-15",
                "ROOM#r / MEMBER#bob : Member lastReadAt=2024-01-15",
                "ROOM#r / MEMBER#cid : Member",
            ],
        ),
        ("a message", &["ROOM#r / MSG#2024-01-16 : Message"]),
        ("a member reads", &["ROOM#r / MEMBER#ann : Member lastReadAt=2024-01-17 unread=N:1"]),
    ] {
        for item in items {
            bed.put(item);
        }
        (bed.n_invocations, bed.n_reads) = (0, 0);
        let (units, _) = bed.settle(1).await;
        let units = units.values().fold(0.0, |sum, units| sum + units);
        found.extend([format!("{what}: {units} write units, {} reads\n", bed.n_reads)]);
    }
    expect![[r#"
        a product: 0 write units, 1 reads
        its first offer: 2 write units, 6 reads
        a dearer one: 1 write units, 5 reads
        a cheaper one: 2 write units, 6 reads
        a change of the dearer one: 2 write units, 8 reads
        the end of the cheaper one: 2 write units, 6 reads
        three members: 3 write units, 9 reads
        a message: 3 write units, 7 reads
        a member reads: 1 write units, 3 reads
    "#]]
    .assert_eq(&found);
}
