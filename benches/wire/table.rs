//! The shipped table with its stream, and what the application writes there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ::stream::event::{Reading, read};
use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, PutRequest, StreamSpecification, StreamViewType, WriteRequest},
};
use aws_sdk_dynamodbstreams::{
    Client as StreamsClient,
    config::{BehaviorVersion, Credentials, Region},
    types::ShardIteratorType,
};
use futures::{StreamExt as _, TryStreamExt as _};
use support::database::{client, create_table};

use crate::Result;

pub(crate) const MAIN: &str = "ripple";
pub(crate) const LEDGER: &str = "ripple-ledger";

/// Items of one `BatchWriteItem`. Source: DynamoDB service quotas.
const BATCH_MAX: usize = 25;

const TIME: &str = "2026-01-01T00:00:00.000Z";

pub(crate) type Item = HashMap<String, AttributeValue>;

pub(crate) struct Tables {
    client: Client,
    streams: StreamsClient,
    stream_arn: String,
    /// Where the next records are, in the only shard.
    iterator: String,
}

pub(crate) fn item<const N: usize>(attributes: [(&str, &str); N]) -> Item {
    attributes.into_iter().map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))).collect()
}

/// The item that shows the likes of a post.
pub(crate) fn detail_key(post: usize) -> Item {
    item([("PK", &format!("POST#p{post}")), ("SK", "METADATA")])
}

impl Tables {
    pub(crate) async fn create(endpoint: &str) -> Result<Self> {
        let (client, layout) = (client(endpoint), catalogue::schema().layout);
        create_table(&client, MAIN, &layout).await;
        create_table(&client, LEDGER, &layout).await;
        let view = StreamSpecification::builder().stream_enabled(true);
        let view = view.stream_view_type(StreamViewType::NewAndOldImages).build()?;
        client.update_table().table_name(MAIN).stream_specification(view).send().await?;
        let described = client.describe_table().table_name(MAIN).send().await?;
        let stream_arn = described.table.and_then(|table| table.latest_stream_arn).ok_or("a stream")?;
        let config = aws_sdk_dynamodbstreams::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("test", "test", None, None, "bench"))
            .endpoint_url(endpoint);
        let streams = StreamsClient::from_conf(config.build());
        let described = streams.describe_stream().stream_arn(&stream_arn).send().await?;
        let shards = described.stream_description.map(|stream| stream.shards.unwrap_or_default());
        let shard = shards.and_then(|shards| shards.first()?.shard_id.clone()).ok_or("a shard")?;
        let iterator = streams.get_shard_iterator().stream_arn(&stream_arn).shard_id(shard);
        let iterator = iterator.shard_iterator_type(ShardIteratorType::TrimHorizon).send().await?;
        let iterator = iterator.shard_iterator.ok_or("an iterator")?;
        Ok(Self { client, streams, stream_arn, iterator })
    }

    /// The records since the last time, as Lambda sends them.
    pub(crate) async fn new_records(&mut self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        loop {
            let page = self.streams.get_records().shard_iterator(&self.iterator).send().await?;
            self.iterator = page.next_shard_iterator.ok_or("an open shard")?;
            let records = page.records.unwrap_or_default();
            if records.is_empty() {
                return Ok(all);
            }
            for record in &records {
                if let Reading::Deliver(record) = read(record, &self.stream_arn)? {
                    all.push(record.json);
                }
            }
        }
    }

    /// The application's posts, from which their details follow.
    pub(crate) async fn put_posts(&self, posts: &[usize]) -> Result<()> {
        let user = item([("PK", "USER#ada"), ("SK", "PROFILE"), ("EntityType", "User"), ("Name", "Ada")]);
        let posts = distinct(posts).into_iter().map(|post| {
            let sk = format!("POST#{TIME}#p{post}");
            item([
                ("PK", "USER#ada"),
                ("SK", &sk),
                ("EntityType", "Post"),
                ("Title", "Engines, and what they are good for"),
                ("Status", "published"),
            ])
        });
        self.put(posts.chain([user]).collect()).await
    }

    /// The details, as the application would write them itself.
    pub(crate) async fn put_details(&self, posts: &[usize]) -> Result<()> {
        let details = distinct(posts).into_iter().map(|post| {
            let mut detail = detail_key(post);
            detail.extend(item([("EntityType", "PostDetail"), ("Title", "Engines, and what they are good for")]));
            detail
        });
        self.put(details.collect()).await
    }

    /// A like of each of these, by somebody else each.
    pub(crate) async fn put_likes(&self, posts: &[usize]) -> Result<()> {
        let likes = posts.iter().enumerate().map(|(user, post)| {
            let (user, post) = (format!("USER#u{user}"), format!("POST#p{post}"));
            let (sk, index_sk) = (format!("LIKE#{post}"), format!("LIKE#{user}"));
            item([
                ("PK", &user),
                ("SK", &sk),
                ("EntityType", "Like"),
                ("GSI1PK", &post),
                ("GSI1SK", &index_sk),
                ("CreatedAt", TIME),
            ])
        });
        self.put(likes.collect()).await
    }

    async fn put(&self, items: Vec<Item>) -> Result<()> {
        for batch in items.chunks(BATCH_MAX) {
            let put = |item: &Item| PutRequest::builder().set_item(Some(item.clone())).build();
            let puts = batch.iter().map(|item| Ok(WriteRequest::builder().put_request(put(item)?).build()));
            let puts = puts.collect::<Result<_>>()?;
            self.client.batch_write_item().request_items(MAIN, puts).send().await?;
        }
        Ok(())
    }

    /// Stops the bench, unless each post shows its likes.
    pub(crate) async fn assert_shown(&self, posts: &[usize]) -> Result<()> {
        let mut expected = BTreeMap::<usize, usize>::new();
        for post in posts {
            *expected.entry(*post).or_default() += 1;
        }
        let reads = expected.into_iter().map(|(post, likes)| async move {
            let key = Some(detail_key(post));
            let read = self.client.get_item().table_name(MAIN).set_key(key).send().await?;
            let shown = read.item.and_then(|mut item| item.remove("LikeCount"));
            let is_right = shown == Some(AttributeValue::N(likes.to_string()));
            if is_right { Ok(()) } else { Err(format!("post {post} has {likes} likes and shows {shown:?}").into()) }
        });
        futures::stream::iter(reads).buffer_unordered(8).try_for_each(|()| async { Ok(()) }).await
    }
}

fn distinct(posts: &[usize]) -> BTreeSet<usize> {
    posts.iter().copied().collect()
}
