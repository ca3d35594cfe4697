use expect_test::{Expect, expect};

use crate::{
    change::Change,
    fixture::{catalogue, effects, inserted, item, key_of, modified, removed, schema, short},
    sources::Sources,
};

fn check(change: &Change, wanted: &Expect) {
    wanted.assert_eq(&effects("copy", change));
}

/// What an item that names Ann copies from her, and the attributes by which it must name her.
fn taken(source: &str, name: &str, item_key: &str) -> Option<String> {
    let (schema, source) = (schema(), item(source));
    let catalogue = catalogue(&schema);
    let mut sources = Sources::default();
    sources.add_item(key_of(&source), Some(source.clone()));
    let refresh = catalogue.refresh(catalogue.position(name).unwrap()).unwrap();
    let (names, wanted) = refresh.taken_from(&schema, &key_of(&source), &key_of(&item(item_key)), &sources)?;
    let names = names.iter().map(|(name, value)| format!("if {name}={} ", short(value)));
    let wanted = wanted.iter().map(|wanted| {
        let value = wanted.value.as_ref().map_or("nothing".to_owned(), short);
        format!("{}={value}", wanted.name)
    });
    Some(names.chain(wanted).collect())
}

#[test]
fn what_an_item_takes_can_be_told_from_its_key_and_the_source() {
    assert_eq!(taken(ANN, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=Ann");
    assert_eq!(taken(ANN, "follower-name", "USER#bob / FOLLOWER#ann").unwrap(), "FollowerName=Ann");
    assert_eq!(taken(ANN, "follower-name", "USER#ann / FOLLOWER#bob"), None, "it names bob");
    assert_eq!(taken(ANN, "comment-author", "POST#p / METADATA"), None, "it is no comment's key");
    let nameless = "USER#ann / PROFILE User";
    assert_eq!(taken(nameless, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=nothing");
    let other = "USER#ann / PROFILE Gadget Name=x";
    assert_eq!(taken(other, "comment-author", "POST#p / COMMENT#c").unwrap(), "if UserId=ann UserName=nothing");
}

const ANN: &str = "USER#ann / PROFILE User Name=Ann";
const COMMENT: &str = "POST#p / COMMENT#c Comment UserId=ann UserName=Ann";
const FOLLOWER: &str = "USER#bob / FOLLOWER#ann Follower FollowerName=Ann";

#[test]
fn a_renamed_source_asks_for_all_that_carry_its_name() {
    check(
        &modified(ANN, "USER#ann / PROFILE User Name=Anna"),
        &expect![[r#"
        comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
        post-author: find table USER#ann / POST#… via Post -> PostDetail
        followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
        follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
    "#]],
    );
}

#[test]
fn an_attribute_that_the_source_loses_is_asked_for_too() {
    check(
        &modified(ANN, "USER#ann / PROFILE User Name=N:1"),
        &expect![[r#"
        comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
        post-author: find table USER#ann / POST#… via Post -> PostDetail
        followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
        follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
    "#]],
    );
    check(
        &modified(ANN, "USER#ann / PROFILE User"),
        &expect![[r#"
        comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
        post-author: find table USER#ann / POST#… via Post -> PostDetail
        followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
        follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
    "#]],
    );
}

#[test]
fn an_attribute_that_nobody_copies_rings_nothing() {
    check(
        &modified(ANN, &format!("{ANN} Avatar=a FollowerCount=N:2")),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &inserted("USER#ann / PROFILE User Avatar=a"),
        &expect![[r#"
        nothing
    "#]],
    );
    check(
        &modified(COMMENT, &format!("{COMMENT} Text=x")),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_removed_source_asks_for_all_that_carry_its_name() {
    check(
        &removed(ANN),
        &expect![[r#"
        comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
        post-author: find table USER#ann / POST#… via Post -> PostDetail
        followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
        follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
    "#]],
    );
    check(
        &modified(ANN, "USER#ann / PROFILE Gadget Name=Ann"),
        &expect![[r#"
        comment-author: find GSI1 USER#ann / COMMENT#… via Comment -> Comment
        post-author: find table USER#ann / POST#… via Post -> PostDetail
        followee-name: find table USER#ann / FOLLOWER#… via Follower -> Follow
        follower-name: find table USER#ann / FOLLOWS#… via Follow -> Follower
    "#]],
    );
}

#[test]
fn a_target_that_is_made_is_looked_at() {
    check(
        &inserted(COMMENT),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
    "#]],
    );
    check(
        &removed(COMMENT),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_target_that_names_another_source_is_looked_at() {
    check(
        &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=bob UserName=Ann"),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
    "#]],
    );
}

#[test]
fn a_put_back_that_drops_or_alters_the_copy_is_looked_at() {
    check(
        &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=ann"),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
    "#]],
    );
    check(
        &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=ann UserName=Old"),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
    "#]],
    );
}

#[test]
fn an_item_through_which_a_target_is_found_rings_the_target_when_it_is_made() {
    check(
        &inserted("USER#bob / FOLLOWER#ann Follower FollowerName=Ann"),
        &expect![[r#"
        followee-name: look USER#ann / FOLLOWS#bob (Follow)
        follower-name: look USER#bob / FOLLOWER#ann (Follower)
    "#]],
    );
    check(
        &inserted("USER#ann / POST#2024#p Post"),
        &expect![[r#"
        post-author: look POST#p / METADATA (PostDetail)
    "#]],
    );
    check(
        &removed("USER#bob / FOLLOWER#ann Follower FollowerName=Ann"),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn a_target_that_comes_into_the_index_or_to_another_place_in_it_is_looked_at() {
    for old in [COMMENT.to_owned(), format!("{COMMENT} GSI1PK=USER#ann GSI1SK=COMMENT#b")] {
        check(
            &modified(&old, &format!("{COMMENT} GSI1PK=USER#ann GSI1SK=COMMENT#c")),
            &expect![[r#"
                comment-author: look POST#p / COMMENT#c (Comment)
            "#]],
        );
    }
    check(
        &modified(&format!("{FOLLOWER} GSI1PK=a"), FOLLOWER),
        &expect![[r#"
        nothing
    "#]],
    );
}

#[test]
fn the_search_of_a_source_is_known_by_its_key_alone() {
    let schema = crate::fixture::schema();
    let catalogue = crate::fixture::catalogue(&schema);
    let source = keys::key::Key::new("USER#ann", "PROFILE");
    let at = catalogue.position("comment-author").unwrap();
    let find = catalogue.derivation(at).unwrap().kind.refresh().unwrap().find_from(&schema, &source).unwrap();
    let (query, via, target) = (find.query, find.via, find.target);
    assert_eq!((query.pk.as_str(), query.sk.first(), via.as_str()), ("USER#ann", "COMMENT#", target.as_str()));
}

#[test]
fn a_source_name_that_cannot_be_read_is_listed_until_it_can() {
    check(
        &modified(COMMENT, "POST#p / COMMENT#c Comment UserId=N:1 UserName=Ann"),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
        comment-author: list UserId is N, and `{UserId}` takes a text: store a text, or link by text(UserId)
    "#]],
    );
    check(
        &modified("POST#p / COMMENT#c Comment UserId=N:1", COMMENT),
        &expect![[r#"
        comment-author: look POST#p / COMMENT#c (Comment)
        comment-author: take off the list
    "#]],
    );
}
