//! The write patterns as data, each with a sample that shows its requests.
//!
//! A pattern's `sample` runs its method with placeholders as inputs, such as `{UserId}`, on a store that records the
//! requests. Keys do not escape braces, so the recorded requests read as templates: `PK = USER#{UserId}`. The table's
//! design shows operation, index, key condition, direction, limit, consistency and number of the recorded requests, so
//! it cannot differ from the code.

use std::error::Error;

use futures::future::BoxFuture;
use keys::{key::Key, number::Decimal};
use serde_dynamo::AttributeValue;
use store::{
    memory::MemoryStore,
    recording::{Recording, Request},
};

use crate::{
    Queries,
    writes::{
        draft::{Edit, number, text, texts},
        folders::NewFile,
        orders::{Line, OrderStatus},
        posts::{NewPost, PostEdit},
        products::{NewProduct, ProductEdit, ReviewEdit},
        readings::NewReading,
        users::{NewUser, ProfileEdit},
    },
};

/// The query interface of a sample.
pub type SampleQueries = Queries<Recording<MemoryStore>>;

/// Any error of a method.
pub type SampleError = Box<dyn Error + Send + Sync>;

/// Runs a pattern with placeholders as inputs.
pub type SampleRun = for<'a> fn(&'a SampleQueries) -> BoxFuture<'a, Result<(), SampleError>>;

/// One write of the table's design.
#[derive(Clone, Debug)]
pub struct AccessPattern {
    /// Its row in the table's design, such as `WP-09`.
    pub id: &'static str,
    /// The purpose of the pattern.
    pub title: &'static str,
    /// The caller's input.
    pub input: &'static str,
    /// The result for the caller.
    pub result: &'static str,
    /// Runs the pattern with placeholders.
    pub sample: SampleRun,
}

impl AccessPattern {
    /// The pattern's requests to a store, in order.
    ///
    /// # Errors
    ///
    /// The error of the sample.
    pub async fn requests(&self) -> Result<Vec<Request>, SampleError> {
        let queries = Queries::new(Recording::new(MemoryStore::new(catalogue::schema().layout)), || 0);
        (self.sample)(&queries).await?;
        Ok(queries.store.take())
    }
}

/// Patterns, each as `id title: input => result, sample;`.
macro_rules! patterns {
    ($($id:literal $title:literal: $input:literal => $result:literal, |$queries:ident| $sample:expr;)*) => {
        &[$(AccessPattern {
            id: $id,
            title: $title,
            input: $input,
            result: $result,
            sample: |$queries| Box::pin(async move {
                $sample;
                Ok(())
            }),
        }),*]
    };
}

/// The patterns WP-01 to WP-19, in order, one for each method.
pub const PATTERNS: &[AccessPattern] = patterns! {
    "WP-01" "create a user with the claim of their email":
        "UserId, NewUser" => "nothing; refused: an existing ID, a taken email",
        |queries| queries.create_user("{UserId}", new_user()).await?;
    "WP-02" "edit a profile under its version":
        "UserId, version, ProfileEdit" => "the new version; refused: another version, none there",
        |queries| {
            let edit = ProfileEdit { name: Some("{Name}".to_owned()), ..ProfileEdit::default() };
            edit_profile(queries, edit).await?;
        };
    "WP-02" "edit a profile under its version, with a new email":
        "UserId, version, ProfileEdit" => "the new version; refused: another version, none there, a taken email",
        |queries| {
            queries.given("EmailClaim", texts([("Email", "{email}"), ("UserId", "{UserId}")]))?;
            let edit = ProfileEdit { email: Some("{NewEmail}".to_owned()), ..ProfileEdit::default() };
            edit_profile(queries, edit).await?;
        };
    "WP-03" "create a post":
        "AuthorId, PostId, NewPost" => "the post's key; refused: one of the same author, time and ID",
        |queries| {
            let new = NewPost { title: "{Title}".to_owned(), content: None, is_published: false };
            queries.create_post("{AuthorId}", "{PostId}", new).await?;
        };
    "WP-03" "publish a post": "the post's key" => "nothing; refused: none there",
        |queries| queries.publish_post(&post(queries)?).await?;
    "WP-03" "edit a post": "the post's key, PostEdit" => "nothing; refused: none there",
        |queries| {
            let edit = PostEdit { title: Some("{Title}".to_owned()), content: Edit::Keep };
            queries.edit_post(&post(queries)?, edit).await?;
        };
    "WP-03" "archive a post": "the post's key" => "nothing; refused: none there",
        |queries| queries.archive_post(&post(queries)?).await?;
    "WP-03" "delete a post; the cascade D-28 does the rest": "the post's key" => "was it there",
        |queries| queries.delete_post(&post(queries)?).await?;
    "WP-04" "comment on a post":
        "UserId, PostId, CommentId, text" => "the comment's key; refused: one of the same post, time and ID",
        |queries| queries.comment("{UserId}", "{PostId}", "{CommentId}", "{Text}").await?;
    "WP-04" "edit a comment": "the comment's key, text" => "nothing; refused: none there",
        |queries| queries.edit_comment(&comment(queries)?, "{Text}").await?;
    "WP-04" "delete a comment": "the comment's key" => "was it there",
        |queries| queries.delete_comment(&comment(queries)?).await?;
    "WP-05" "like a post": "UserId, PostId" => "was it new",
        |queries| queries.like("{UserId}", "{PostId}").await?;
    "WP-05" "unlike a post": "UserId, PostId" => "was it there",
        |queries| queries.unlike("{UserId}", "{PostId}").await?;
    "WP-06" "follow": "FollowerId, FolloweeId" => "was it new; refused: oneself",
        |queries| queries.follow("{FollowerId}", "{FolloweeId}").await?;
    "WP-06" "unfollow": "FollowerId, FolloweeId" => "was it there",
        |queries| queries.unfollow("{FollowerId}", "{FolloweeId}").await?;
    "WP-07" "join a group": "UserId, GroupId, role" => "nothing; refused: who is in it",
        |queries| queries.join_group("{UserId}", "{GroupId}", "{Role}").await?;
    "WP-07" "change a role in a group": "UserId, GroupId, role" => "nothing; refused: who is not in it",
        |queries| {
            queries.given("Membership", texts([("UserId", "{UserId}"), ("GroupId", "{GroupId}")]))?;
            queries.change_role("{UserId}", "{GroupId}", "{Role}").await?;
        };
    "WP-07" "leave a group": "UserId, GroupId" => "was it there",
        |queries| queries.leave_group("{UserId}", "{GroupId}").await?;
    "WP-08" "place an order":
        "UserId, OrderId, lines of ProductId and quantity" =>
        "PlacedOrder; refused: not enough of a product, no such product, more than 49 lines, an order of the same ID",
        |queries| queries.place_order("{UserId}", "{OrderId}", &stock(queries)?).await?;
    "WP-09" "change an order's status":
        "the order's key, OrderStatus" => "nothing; refused: unchanged, cancelled, none there",
        |queries| queries.change_order_status(&placed(queries).await?, OrderStatus::Paid).await?;
    "WP-09" "cancel an order, restock it and mark its items":
        "the order's key, OrderStatus" => "nothing; refused: unchanged, none there",
        |queries| queries.change_order_status(&placed(queries).await?, OrderStatus::Cancelled).await?;
    "WP-10" "upload a file":
        "FolderId, FileId, NewFile" => "the file's key; refused: no such folder, one of the same folder, time and ID",
        |queries| file(queries).await?;
    "WP-10" "move a file":
        "the file's key, the FolderId where it goes" => "the new key; refused: none there, no such folder, unchanged",
        |queries| {
            folder(queries, "{NewFolderId}", None).await?;
            queries.move_file(&forgotten(queries, file(queries).await?), "{NewFolderId}").await?;
        };
    "WP-10" "rename a file": "the file's key, name" => "nothing; refused: none there",
        |queries| queries.rename_file(&forgotten(queries, file(queries).await?), "{Name}").await?;
    "WP-10" "delete a file": "the file's key" => "was it there",
        |queries| queries.delete_file(&forgotten(queries, file(queries).await?)).await?;
    "WP-10" "create a folder":
        "FolderId, the FolderId where it goes, name" =>
        "nothing; refused: an existing ID, no such parent, under itself",
        |queries| {
            folder(queries, "{ParentId}", None).await?;
            folder(queries, "{FolderId}", Some("{ParentId}")).await?;
        };
    "WP-10" "rename a folder": "FolderId, name" => "nothing; refused: none there",
        |queries| {
            folder(queries, "{ParentId}", None).await?;
            forgotten(queries, folder(queries, "{FolderId}", Some("{ParentId}")).await?);
            queries.rename_folder("{FolderId}", "{Name}").await?;
        };
    "WP-10" "move a folder with all that is in it":
        "FolderId, the FolderId where it goes, or none" =>
        "nothing; refused: none there, no such parent, under itself, unchanged, too deep",
        |queries| {
            folder(queries, "{GrandparentId}", None).await?;
            folder(queries, "{ParentId}", Some("{GrandparentId}")).await?;
            forgotten(queries, folder(queries, "{FolderId}", None).await?);
            queries.move_folder("{FolderId}", Some("{ParentId}")).await?;
        };
    "WP-10" "delete an empty folder": "FolderId" => "was it there; refused: not empty",
        |queries| {
            forgotten(queries, folder(queries, "{FolderId}", None).await?);
            queries.delete_folder("{FolderId}").await?;
        };
    "WP-11" "hire an employee":
        "OrgId, EmployeeId, name, the EmployeeId of the manager, or none" =>
        "the employee's key; refused: an existing ID, no such manager, under themselves, too deep",
        |queries| {
            employee(queries, "{ManagerId}", None).await?;
            employee(queries, "{EmployeeId}", Some("{ManagerId}")).await?;
        };
    "WP-11" "move an employee with the whole team":
        "OrgId, EmployeeId, the EmployeeId of the manager, or none" =>
        "nothing; refused: none there, no such manager, under a report, unchanged, too deep",
        |queries| {
            employee(queries, "{HeadId}", None).await?;
            employee(queries, "{ManagerId}", Some("{HeadId}")).await?;
            forgotten(queries, employee(queries, "{EmployeeId}", None).await?);
            queries.move_employee("{OrgId}", "{EmployeeId}", Some("{ManagerId}")).await?;
        };
    "WP-11" "dismiss an employee": "OrgId, EmployeeId" => "nothing; refused: none there, somebody reports to them",
        |queries| {
            forgotten(queries, employee(queries, "{EmployeeId}", None).await?);
            queries.dismiss("{OrgId}", "{EmployeeId}").await?;
        };
    "WP-12" "add a reading": "NewReading" => "was it new; refused: another value at the same time",
        |queries| queries.add_reading(&reading(0)).await?;
    "WP-12" "add up to 25 readings":
        "NewReadings" => "how many were new; refused: another value at the same time, more than 25",
        |queries| queries.add_readings(&[reading(0), reading(1)]).await?;
    "WP-13" "create a group": "GroupId, name, description" => "nothing; refused: an existing ID",
        |queries| queries.create_group("{GroupId}", "{Name}", Some("{Description}")).await?;
    "WP-13" "rename a group": "GroupId, name" => "nothing; refused: none there",
        |queries| {
            queries.given("Group", texts([("GroupId", "{GroupId}")]))?;
            queries.rename_group("{GroupId}", "{Name}").await?;
        };
    "WP-13" "delete a group": "GroupId" => "was it there",
        |queries| queries.delete_group("{GroupId}").await?;
    "WP-14" "create an organization": "OrgId, name" => "nothing; refused: an existing ID",
        |queries| queries.create_organization("{OrgId}", "{Name}").await?;
    "WP-14" "rename an organization": "OrgId, name" => "nothing; refused: none there",
        |queries| {
            queries.given("Organization", texts([("OrgId", "{OrgId}")]))?;
            queries.rename_organization("{OrgId}", "{Name}").await?;
        };
    "WP-14" "add a team": "OrgId, TeamId, name" => "nothing; refused: an existing ID",
        |queries| queries.add_team("{OrgId}", "{TeamId}", "{Name}").await?;
    "WP-14" "rename a team": "OrgId, TeamId, name" => "nothing; refused: none there",
        |queries| {
            queries.given("Team", texts([("OrgId", "{OrgId}"), ("TeamId", "{TeamId}")]))?;
            queries.rename_team("{OrgId}", "{TeamId}", "{Name}").await?;
        };
    "WP-14" "remove a team": "OrgId, TeamId" => "was it there",
        |queries| queries.remove_team("{OrgId}", "{TeamId}").await?;
    "WP-14" "add a member": "OrgId, UserId, role" => "nothing; refused: who is one",
        |queries| queries.add_member("{OrgId}", "{UserId}", "{Role}").await?;
    "WP-14" "change a member's role": "OrgId, UserId, role" => "nothing; refused: who is none",
        |queries| {
            queries.given("Member", texts([("OrgId", "{OrgId}"), ("UserId", "{UserId}")]))?;
            queries.change_member("{OrgId}", "{UserId}", "{Role}").await?;
        };
    "WP-14" "remove a member": "OrgId, UserId" => "was it there",
        |queries| queries.remove_member("{OrgId}", "{UserId}").await?;
    "WP-15" "create a product": "ProductId, NewProduct" => "nothing; refused: an existing ID",
        |queries| queries.create_product("{ProductId}", new_product()).await?;
    "WP-15" "change a product": "ProductId, ProductEdit" => "nothing; refused: none there",
        |queries| {
            stock(queries)?;
            let edit = ProductEdit { category: Some("{Category}".to_owned()), ..ProductEdit::default() };
            queries.change_product("{ProductId}", edit).await?;
        };
    "WP-15" "set how many of a product are in stock":
        "ProductId, the stock when it was counted, the stock" =>
        "nothing; refused: another stock than counted, none there",
        |queries| {
            stock(queries)?;
            queries.set_inventory("{ProductId}", 10, 20).await?;
        };
    "WP-15" "remove a product": "ProductId" => "was it there",
        |queries| queries.remove_product("{ProductId}").await?;
    "WP-15" "add a tag to a product": "ProductId, tag" => "nothing; refused: none there",
        |queries| {
            stock(queries)?;
            queries.add_tag("{ProductId}", "{Tag}").await?;
        };
    "WP-15" "remove a tag from a product": "ProductId, tag" => "nothing; refused: none there",
        |queries| {
            stock(queries)?;
            queries.remove_tag("{ProductId}", "{Tag}").await?;
        };
    "WP-15" "count a view of a product": "ProductId" => "nothing; refused: none there",
        |queries| {
            stock(queries)?;
            queries.count_product_view("{ProductId}").await?;
        };
    "WP-16" "review a product":
        "UserId, ProductId, ReviewId, rating, text" =>
        "the review's key; refused: a rating out of range, one of the same product, time and ID",
        |queries| review(queries).await?;
    "WP-16" "edit a review":
        "the review's key, ReviewEdit" => "nothing; refused: a rating out of range, none there",
        |queries| {
            let review = forgotten(queries, review(queries).await?);
            queries.edit_review(&review, ReviewEdit { rating: Some(4), text: Edit::Keep }).await?;
        };
    "WP-16" "delete a review": "the review's key" => "was it there",
        |queries| queries.delete_review(&forgotten(queries, review(queries).await?)).await?;
    "WP-17" "record a view of a post": "UserId, PostId" => "the view's key",
        |queries| queries.record_view("{UserId}", "{PostId}").await?;
    "WP-18" "delete a user; the cascade D-29 does the rest": "UserId" => "was it there",
        |queries| queries.delete_user("{UserId}").await?;
    "WP-19" "subscribe": "UserId, SubscriptionId, plan" => "nothing; refused: an existing ID",
        |queries| queries.subscribe("{UserId}", "{SubscriptionId}", "{Plan}").await?;
    "WP-19" "unsubscribe": "UserId, SubscriptionId" => "was it there",
        |queries| queries.unsubscribe("{UserId}", "{SubscriptionId}").await?;
    "WP-19" "put a product into a cart":
        "UserId, CartId, ProductId, quantity" => "nothing; refused: a quantity below 1",
        |queries| queries.put_into_cart("{UserId}", "{CartId}", "{ProductId}", 1).await?;
    "WP-19" "take a product out of a cart": "UserId, CartId, ProductId" => "was it there",
        |queries| queries.take_out_of_cart("{UserId}", "{CartId}", "{ProductId}").await?;
};

impl SampleQueries {
    /// Stores an item that a sample needs, without recording a request.
    fn given(
        &self,
        entity: &'static str,
        values: impl IntoIterator<Item = (&'static str, AttributeValue)>,
    ) -> Result<Key, SampleError> {
        let (key, item) = self.entity(entity)?.item(&self.schema.layout, values.into_iter().collect())?;
        self.store.inner().put_raw(derive::write::Table::Main, item)?;
        Ok(key)
    }
}

/// Drops the requests so far, which only prepared the sample.
fn forgotten<T>(queries: &SampleQueries, prepared: T) -> T {
    drop(queries.store.take());
    prepared
}

fn new_user() -> NewUser {
    NewUser { name: "{Name}".to_owned(), email: "{Email}".to_owned(), avatar: None }
}

async fn edit_profile(queries: &SampleQueries, edit: ProfileEdit) -> Result<i64, SampleError> {
    let profile = texts([("UserId", "{UserId}"), ("Email", "{email}"), ("CreatedAt", "{CreatedAt}")]);
    queries.given("User", profile.chain([("Version", number(1))]))?;
    Ok(queries.update_profile("{UserId}", 1, edit).await?)
}

fn post(queries: &SampleQueries) -> Result<Key, SampleError> {
    queries.given("Post", texts([("AuthorId", "{AuthorId}"), ("CreatedAt", "{CreatedAt}"), ("PostId", "{PostId}")]))
}

fn comment(queries: &SampleQueries) -> Result<Key, SampleError> {
    let key = [("PostId", "{PostId}"), ("CreatedAt", "{CreatedAt}"), ("CommentId", "{CommentId}")];
    queries.given("Comment", texts(key).chain([("UserId", text("{UserId}"))]))
}

/// Creates a folder, and forgets the requests before.
async fn folder(queries: &SampleQueries, id: &str, parent: Option<&str>) -> Result<(), SampleError> {
    forgotten(queries, ());
    Ok(queries.create_folder(id, parent, "{Name}").await?)
}

/// Uploads a file to a folder, and forgets the requests before.
async fn file(queries: &SampleQueries) -> Result<Key, SampleError> {
    folder(queries, "{FolderId}", None).await?;
    forgotten(queries, ());
    let new = NewFile { name: "{Name}".to_owned(), size_bytes: 1_024 };
    Ok(queries.upload_file("{FolderId}", "{FileId}", new).await?)
}

/// Hires an employee, and forgets the requests before.
async fn employee(queries: &SampleQueries, id: &str, manager: Option<&str>) -> Result<Key, SampleError> {
    forgotten(queries, ());
    Ok(queries.hire("{OrgId}", id, "{Name}", manager).await?)
}

fn new_product() -> NewProduct {
    let (name, category, tags) = ("{Name}".to_owned(), "{Category}".to_owned(), ["{Tag}".to_owned()].into());
    NewProduct { name, price: Decimal::from(2), category, inventory: 10, tags }
}

/// Adds a product to the stock, and gives an order of it.
fn stock(queries: &SampleQueries) -> Result<[Line; 1], SampleError> {
    let product = texts([("ProductId", "{ProductId}"), ("Name", "{Name}"), ("Category", "{Category}")]);
    queries.given("Product", product.chain([("Price", number(2)), ("Inventory", number(10))]))?;
    Ok([Line { product_id: "{ProductId}".to_owned(), quantity: 3 }])
}

async fn placed(queries: &SampleQueries) -> Result<Key, SampleError> {
    let placed = queries.place_order("{UserId}", "{OrderId}", &stock(queries)?).await?;
    Ok(forgotten(queries, placed.key))
}

async fn review(queries: &SampleQueries) -> Result<Key, SampleError> {
    Ok(queries.write_review("{UserId}", "{ProductId}", "{ReviewId}", 5, Some("{Text}")).await?)
}

fn reading(at_ms: u64) -> NewReading {
    NewReading { sensor_id: "{SensorId}".to_owned(), at_ms, value: Decimal::from(1) }
}
