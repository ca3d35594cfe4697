//! Uses the printed keys of `examples/chat/ripple.toml`. The test puts the printed file `keys.rs` beside it.

#[path = "keys.rs"]
mod keys;

use keys::{ChannelKey, MemberByUser};

fn main() {
    let channel = ChannelKey { channel_id: "c#1".to_owned() };
    let key = channel.build().unwrap();
    assert_eq!((key.partition.as_str(), key.sort.as_str()), ("CHANNEL#c%231", "CHANNEL#c%231"));
    assert_eq!(ChannelKey::FORM.names, ["pk", "sk"]);
    assert_eq!(ChannelKey::parse("CHANNEL#c%231", "CHANNEL#c%231"), Some(channel));
    assert_eq!(ChannelKey::parse("Rooms#CHANNEL#c", "CHANNEL#c"), None);
    let member = MemberByUser { user_id: "ann".to_owned(), workspace_id: "w".to_owned() };
    assert_eq!(member.build().unwrap().partition, "USER#ann");
    assert_eq!(MemberByUser::FORM.names, ["gsi1pk", "gsi1sk"]);
}
