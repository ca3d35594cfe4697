//! Uses the printed types of `examples/own-table/ripple.toml`. The test puts the printed file `keys.rs` beside it.

#[path = "keys.rs"]
mod keys;

use keys::{Follow, FollowKey, User, UserKey};

fn main() {
    let key = FollowKey { follower_id: "ann#1".to_owned(), followed_id: "50%".to_owned() };
    let built = key.build().unwrap();
    assert_eq!((built.partition.as_str(), built.sort.as_str()), ("USER#ann%231", "FOLLOWS#50%25"));
    assert_eq!(FollowKey::parse(&built.partition, &built.sort), Some(key));
    assert_eq!(UserKey::parse(&built.partition, &built.sort), None);
    let refused = UserKey { user_id: String::new() }.build().unwrap_err();
    assert_eq!(refused.to_string(), "User.userId is empty; a key value must not be");

    let follow = Follow { pk: built.partition, sk: built.sort, type_: "Follow".to_owned(), since: None, followed_name: Some(7) };
    assert_eq!(follow.followed_name, Some(7));
    let user = User::<u8> {
        pk: String::new(),
        sk: String::new(),
        type_: "User".to_owned(),
        user_name: None,
        joined_on: None,
        follower_count: Some("1".to_owned()),
    };
    assert_eq!(user.follower_count.as_deref(), Some("1"));
}
