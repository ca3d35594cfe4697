//! Posts, comments, likes and views; folders and files.

use keys::{entity::Entity, error::EntityError, item::Item, key::Key, number::Decimal};

use super::AT;
use crate::{
    files::{File, FileDetail, FileDetailKey, FileKey, Folder, FolderKey},
    posts::{Comment, CommentKey, Like, LikeKey, Post, PostDetail, PostDetailKey, PostKey, View, ViewKey, status},
    table::layout,
};

const TITLE: &str = "Notes on the Analytical Engine";
const CONTENT: &str =
    "The Analytical Engine weaves algebraic patterns just as the Jacquard loom weaves flowers and leaves.";
const AVATAR: &str = "https://images.example.org/avatars/ada.webp";

pub(super) fn samples() -> Result<Vec<Item>, EntityError> {
    let layout = layout();
    Ok(vec![
        Post {
            key: PostKey { author_id: "ada".into(), created_at: AT.to_owned(), post_id: "p-1842".into() },
            title: Some(TITLE.into()),
            content: Some(CONTENT.into()),
            status: Some(status::PUBLISHED.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        detail().to_item(&layout)?,
        Comment {
            key: CommentKey { post_id: "p-1842".into(), created_at: AT.to_owned(), comment_id: "c-77".into() },
            user_id: Some("grace".into()),
            text: Some("It can do whatever we know how to order it to perform.".into()),
            updated_at: Some(AT.into()),
            user_name: Some("Grace Hopper".into()),
            user_avatar: Some("https://images.example.org/avatars/grace.webp".into()),
        }
        .to_item(&layout)?,
        Like {
            key: LikeKey { user_id: "grace".into(), post_id: "p-1842".into() },
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        View {
            key: ViewKey { user_id: "grace".into(), viewed_at: AT.to_owned(), post_id: "p-1842".into() },
            expires_at: Some(1_713_090_600),
            created_at: Some(AT.into()),
            updated_at: Some(AT.into()),
        }
        .to_item(&layout)?,
        folder().to_item(&layout)?,
        file().to_item(&layout)?,
        file_detail().to_item(&layout)?,
    ])
}

fn detail() -> PostDetail {
    PostDetail {
        key: PostDetailKey { post_id: "p-1842".into() },
        author_id: Some("ada".into()),
        created_at: Some(AT.into()),
        title: Some(TITLE.into()),
        status: Some(status::PUBLISHED.into()),
        updated_at: Some(AT.into()),
        claims: Some(vec![Key::new("USER#ada", format!("POST#{AT}#p-1842")).into()]),
        author_name: Some("Ada Lovelace".into()),
        author_avatar: Some(AVATAR.into()),
        comment_count: Some(18),
        like_count: Some(342),
        view_count: Some(5_120),
    }
}

fn folder() -> Folder {
    Folder {
        key: FolderKey { folder_id: "f-2".into() },
        name: Some("Letters".into()),
        parent_id: Some("f-1".into()),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        path: Some("/Archive/Letters".into()),
        file_count: Some(3),
        total_bytes: Some(Decimal::from(48_211)),
    }
}

fn file() -> File {
    File {
        key: FileKey { folder_id: "f-2".into(), uploaded_at: AT.to_owned(), file_id: "x-9".into() },
        name: Some("to-babbage.txt".into()),
        size_bytes: Some(1_943),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
    }
}

fn file_detail() -> FileDetail {
    FileDetail {
        key: FileDetailKey { file_id: "x-9".into() },
        folder_id: Some("f-2".into()),
        uploaded_at: Some(AT.into()),
        name: Some("to-babbage.txt".into()),
        size_bytes: Some(1_943),
        created_at: Some(AT.into()),
        updated_at: Some(AT.into()),
        claims: Some(vec![Key::new("FOLDER#f-2", format!("FILE#{AT}#x-9")).into()]),
        path: Some("/Archive/Letters/to-babbage.txt".into()),
    }
}
