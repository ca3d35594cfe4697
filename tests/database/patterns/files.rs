//! Folders and files.

use std::sync::Arc;

use entities::files::{File, FileDetail, Folder};
use queries::page::{Page, PageRequest};

use crate::patterns::{
    bed::{Bed, mapped},
    crowd::ids,
};

type Held = Arc<Bed>;

pub(crate) async fn ap_026_a_folder_with_its_files_newest_first(bed: Held) {
    for folder in ids("f") {
        let wanted = bed.crowd.only::<Folder>(|it| it.key.folder_id.as_str() == folder);
        let files = bed.crowd.reversed(
            |it: &File| it.key.folder_id.as_str() == folder,
            |it| (it.key.uploaded_at.clone(), it.key.file_id.clone()),
        );
        let id = folder.clone().into();
        let found = bed.queries.folder_with_files(&id, &PageRequest::first(3)).await.unwrap();
        bed.same(&found.folder, &Some(wanted), &folder);
        bed.same(&found.files.items, &files[..2].to_vec(), &folder);
        let read = async |page: PageRequest| {
            let found = bed.queries.folder_with_files(&id, &page).await?;
            let items = found.folder.map(|_| None).into_iter().chain(found.files.items.into_iter().map(Some));
            Ok(Page { items: items.collect(), unreadable: vec![], next: found.files.next })
        };
        let wanted: Vec<_> = std::iter::once(None).chain(files.into_iter().map(Some)).collect();
        bed.lists(&folder, &wanted, read).await;
    }
}

pub(crate) async fn ap_027_a_file_with_its_path(bed: Held) {
    for file in ids("x") {
        let wanted = bed.crowd.only::<FileDetail>(|it| it.key.file_id.as_str() == file);
        assert_eq!(wanted.path, Some(format!("/of/{file}")));
        bed.same(&bed.queries.file(&file.clone().into()).await.unwrap(), &Some(wanted), &file);
    }
    bed.same(&bed.queries.file(&"x2".into()).await.unwrap(), &None, "no file");
}

pub(crate) async fn ap_028_sub_folders_by_name(bed: Held) {
    for folder in ids("f") {
        let is_below = |it: &Folder| it.parent_id.as_ref().is_some_and(|parent| parent.as_str() == folder);
        // A name ends in `#` in the key, so it comes after names that continue with a space.
        let by_name = |it: &Folder| (keys::escape::value(&it.name.clone().unwrap()) + "#", it.key.folder_id.clone());
        let below = bed.crowd.sorted(is_below, by_name);
        let wanted: Vec<_> = below.into_iter().map(|it| (it.key, it.name, it.path)).collect();
        let id = folder.clone().into();
        bed.lists(&folder, &wanted, async |page| {
            Ok(mapped(bed.queries.sub_folders_of(&id, &page).await?, |it| (it.key, it.name, it.path)))
        })
        .await;
    }
}
