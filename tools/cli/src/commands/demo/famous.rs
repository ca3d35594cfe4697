//! `--scenario famous`: a user with many comments is renamed three times in quick succession.
//!
//! With `--others`, other users write at the same time. The report contains their lag before the renames and during
//! them.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use derive::{schema::Schema, write::Write};
use engine::clock::{Clock as _, SystemClock};
use indicatif::ProgressBar;
use keys::key::Key;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde::Serialize;

use crate::commands::demo::{
    FewLags, Running,
    book::{ChangeLag, Lags, Trace, Wrote},
    rounded,
    workload::{AppAction, Client, Items, Step, key, text, user_id},
    write,
};

/// Number of renames.
const RENAMES: u32 = 3;

/// The derivation that copies the user's name to comments.
const COMMENT_AUTHOR: &str = "comment-author";

/// Assumed speed of the fan-out, in items a second. The lag of the others is measured before the renames for about as
/// long as the fan-out will take at that speed.
const ITEMS_A_SECOND: u32 = 1_000;

/// Limits on the seconds of that measurement: enough for a percentile, and at most a minute.
const QUIET_SECONDS: std::ops::RangeInclusive<u32> = 3..=60;

/// While others write, the fan-out counts as finished if every item was written and no name was written for this many
/// milliseconds. That is longer than one page takes.
const OVER_MS: u64 = 3_000;

/// The same limit if some items were not written. The verification at the end reports those items.
const GIVEN_UP_MS: u64 = 90_000;

/// The user who is renamed.
const USER: &str = "famous#1";

/// Number of posts with the user's comments. Each post's comments are in one partition.
const POSTS: usize = 100;

const POLL: Duration = Duration::from_millis(100);

/// Time to wait for the writes derived from a change before the change is forgotten, in milliseconds: three invocations
/// of a minute, because a count and its display are a chain.
const FOLLOWS_MS: u64 = 180_000;

/// The report of the scenario. The names are stable.
#[derive(Debug, Serialize)]
pub(super) struct FamousReport {
    /// Items with the user's name.
    items: u32,
    renames: u32,
    /// Time from the response to the first rename until the last write of a name, in milliseconds.
    fan_out_ms: u64,
    /// Writes of names a second in that time.
    items_per_second: f64,
    /// The lag of other users' changes, with `--others`.
    others: Option<OthersLag>,
    /// Number of written names.
    #[serde(skip)]
    n_names: usize,
}

/// The lag of other users' changes, in milliseconds.
#[derive(Debug, Serialize)]
struct OthersLag {
    /// Before the renames.
    quiet: FewLags,
    /// Changes with a response between the first rename and the last write of a name.
    during: FewLags,
}

pub(super) async fn run(running: &mut Running<'_>) -> anyhow::Result<FamousReport> {
    let args = running.args;
    let schema = (*running.schema).clone();
    let (mut famous, mut others) = (FamousUser::new(schema.clone(), args.seed), Others::new(schema, args.seed));
    let mut setting = famous.setting()?;
    if args.others > 0 {
        setting.extend(others.setting()?);
    }
    running.set(setting).await?;
    running.write((0..args.writes()).map(|_| famous.comment())).await?;
    running.quiet().await?;
    drop(running.followed());

    let quiet = match args.others {
        0 => None,
        _ => Some(lags_before(running, &mut others).await?),
    };
    let before = running.names();
    running.bar.set_message("renaming");
    let (first_ms, mut followed) = match args.others {
        0 => (rename(running, &mut famous).await?, Vec::new()),
        _ => rename_among(running, &mut famous, &mut others).await?,
    };
    running.quiet().await?;
    followed.extend(running.followed());
    let Wrote { n, last_ms } = running.names();
    let n_names = n - before.n;
    let fan_out_ms = if n_names == 0 { 0 } else { last_ms.saturating_sub(first_ms) };
    followed.retain(|change| (first_ms..=last_ms).contains(&change.answered_ms));
    Ok(FamousReport {
        items: args.writes(),
        renames: RENAMES,
        fan_out_ms,
        items_per_second: a_second(n_names, fan_out_ms),
        others: quiet.map(|quiet| OthersLag { quiet, during: few_lags(followed) }),
        n_names,
    })
}

/// Renames the user several times in a row. Returns the time of the first response, in milliseconds since the epoch.
async fn rename(running: &Running<'_>, famous: &mut FamousUser) -> anyhow::Result<u64> {
    let mut first_ms = None;
    for nth in 1..=RENAMES {
        let renamed = Client::default().perform(running.metered.as_ref(), famous.rename(nth)?).await;
        anyhow::ensure!(renamed.context("the famous user cannot be renamed")?, "the famous user is not in the table");
        first_ms.get_or_insert(SystemClock.now_ms());
    }
    Ok(first_ms.unwrap_or_default())
}

/// Renames the user while others write, until the fan-out is finished. Also returns the lag of the others' older
/// changes.
async fn rename_among(
    running: &mut Running<'_>,
    famous: &mut FamousUser,
    others: &mut Others,
) -> anyhow::Result<(u64, Vec<ChangeLag>)> {
    let is_over = AtomicBool::new(false);
    let (metered, rate) = (Arc::clone(&running.metered), Some(running.args.others));
    let actions = std::iter::from_fn(|| (!is_over.load(Ordering::Relaxed)).then(|| others.next_action()));
    let hidden = ProgressBar::hidden();
    let writing = write(&metered, rate, actions, &hidden);
    let renaming = async {
        let renamed = rename_and_wait(running, famous).await;
        is_over.store(true, Ordering::Relaxed);
        renamed
    };
    let (written, renamed) = tokio::join!(writing, renaming);
    written?;
    renamed
}

/// Renames the user, and waits until the fan-out seems to be finished, while others write.
async fn rename_and_wait(running: &mut Running<'_>, famous: &mut FamousUser) -> anyhow::Result<(u64, Vec<ChangeLag>)> {
    let n_before = running.names().n;
    let first_ms = rename(running, famous).await?;
    let n_items = usize::try_from(running.args.writes()).unwrap_or(usize::MAX);
    let (mut followed, mut settled_ms) = (Vec::new(), first_ms);
    loop {
        tokio::select! {
            error = running.service.ended() => return Err(error),
            () = tokio::time::sleep(POLL) => {}
        }
        let (now_ms, names) = (SystemClock.now_ms(), running.names());
        if now_ms.saturating_sub(settled_ms) > FOLLOWS_MS {
            followed.extend(running.settle(now_ms.saturating_sub(FOLLOWS_MS)));
            settled_ms = now_ms;
        }
        let patience_ms = if names.n - n_before < n_items { GIVEN_UP_MS } else { OVER_MS };
        if now_ms.saturating_sub(names.last_ms.max(first_ms)) > patience_ms {
            return Ok((first_ms, followed));
        }
    }
}

/// Measures the lag of the others before the renames.
async fn lags_before(running: &mut Running<'_>, others: &mut Others) -> anyhow::Result<FewLags> {
    running.bar.set_message("watching the others");
    let seconds = (running.args.writes() / ITEMS_A_SECOND).clamp(*QUIET_SECONDS.start(), *QUIET_SECONDS.end());
    let actions = (0..seconds * running.args.others).map(|_| others.next_action());
    write(&running.metered, Some(running.args.others), actions, &ProgressBar::hidden()).await?;
    running.quiet().await?;
    Ok(few_lags(running.followed()))
}

fn few_lags(followed: Vec<ChangeLag>) -> FewLags {
    FewLags::from(&followed.into_iter().collect::<Lags>())
}

fn a_second(n: usize, ms: u64) -> f64 {
    let narrow = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    rounded(narrow(u64::try_from(n).unwrap_or(u64::MAX)) * 1_000.0 / narrow(ms.max(1)))
}

impl Running<'_> {
    /// The writes of the user's name so far.
    fn names(&self) -> Wrote {
        self.book.book().wrote(COMMENT_AUTHOR)
    }

    /// Takes the lags of the others' changes so far. Requires a quiet stream.
    fn followed(&self) -> Vec<ChangeLag> {
        let (mut book, mut written) = (self.book.book(), self.metered.written());
        let answered_ms = std::mem::take(&mut written.answered_ms);
        std::mem::take::<Trace>(&mut book.trace).followed(&answered_ms)
    }

    /// Takes the lags of the others' changes before this time.
    fn settle(&self, before_ms: u64) -> Vec<ChangeLag> {
        let (mut book, mut written) = (self.book.book(), self.metered.written());
        book.trace.settle(&mut written.answered_ms, before_ms)
    }
}

impl FamousReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { renames, n_names, fan_out_ms, items_per_second, .. } = self;
        let mut lines = vec![format!(
            "  renamed {renames} times: {n_names} names written in {fan_out_ms} ms, {items_per_second} a second"
        )];
        if let Some(OthersLag { quiet, during }) = &self.others {
            lines.push(format!("  lag of other people before the renames: {}", quiet.text()));
            lines.push(format!("  lag of other people during the renames: {}", during.text()));
        }
        lines
    }
}

// ---- The user, and the draws of the posts that receive a comment ----

struct FamousUser {
    chance: StdRng,
    items: Items,
}

impl FamousUser {
    fn new(schema: Schema, seed: u64) -> Self {
        Self { chance: StdRng::seed_from_u64(seed), items: Items::new(schema) }
    }

    /// The actions before the comments: the user signs up, and some authors write a post each.
    fn setting(&mut self) -> anyhow::Result<Vec<AppAction>> {
        let mut actions = vec![self.sign_up(USER)?];
        for at in 0..POSTS {
            let author = user_id(at);
            actions.push(self.sign_up(&author)?);
            self.items.begin();
            let post = self.items.post(&author, &post_id(at), &format!("Post {at}"))?;
            actions.push(one(&author, post));
        }
        Ok(actions)
    }

    /// The next comment.
    fn comment(&mut self) -> anyhow::Result<AppAction> {
        self.items.begin();
        let (post, comment) = (post_id(self.chance.random_range(0..POSTS)), self.items.new_id("c"));
        Ok(one(&comment, self.items.comment(&post, &comment, USER)?))
    }

    /// Renames the user; the name contains the number of the rename.
    fn rename(&mut self, nth: u32) -> anyhow::Result<AppAction> {
        self.items.begin();
        let name = text("Name", format!("Grace the {nth}."));
        Ok(one(USER, self.items.update("User", &key([("UserId", USER)]), &[name])?))
    }

    fn sign_up(&mut self, user: &str) -> anyhow::Result<AppAction> {
        self.items.begin();
        Ok(one(user, self.items.user(user, &format!("{user}, who is new"), None)?))
    }
}

/// An action of one write.
pub(super) fn one(subject: &str, write: Write) -> AppAction {
    AppAction { subject: subject.to_owned(), steps: vec![Step::Write(write)] }
}

/// Some ids contain characters that have a meaning in keys: `#` and `%`.
fn post_id(at: usize) -> String {
    match at % 10 {
        3 => format!("p{at}#x"),
        4 => format!("p{at}%23"),
        _ => format!("p{at}"),
    }
}

// ---- Other users, who follow each other, like each other's posts, and undo it, during a rename ----
//
// Each action changes something, and affects only items of these users. So the key of an item shows whether a derived
// write belongs to them.

/// Number of users. Each has a post.
const OTHERS: usize = 100;

/// Prefix of the ids of these users and their posts. No other id has it.
const MARK: &str = "other-";

/// The other users, with their follows and likes.
pub(super) struct Others {
    chance: StdRng,
    items: Items,
    follows: BTreeSet<(usize, usize)>,
    likes: BTreeSet<(usize, usize)>,
}

/// True if the item belongs to these users.
pub(super) fn is_theirs(key: &Key) -> bool {
    key.pk.split_once('#').is_some_and(|(_, id)| id.starts_with(MARK))
}

impl Others {
    /// The other users, before they sign up.
    pub(super) fn new(schema: Schema, seed: u64) -> Self {
        let chance = StdRng::seed_from_u64(seed);
        Self { chance, items: Items::new(schema), follows: BTreeSet::new(), likes: BTreeSet::new() }
    }

    /// The actions before the scenario: each signs up, and posts something.
    pub(super) fn setting(&mut self) -> anyhow::Result<Vec<AppAction>> {
        let mut actions = Vec::new();
        for at in 0..OTHERS {
            let subject = id(at);
            self.items.begin();
            let steps = vec![
                Step::Write(self.items.user(&subject, &format!("Other {at}"), None)?),
                Step::Write(self.items.post(&subject, &subject, &format!("Post of {at}"))?),
            ];
            actions.push(AppAction { subject, steps });
        }
        Ok(actions)
    }

    /// The next action: one follows another or likes their post, or undoes it.
    pub(super) fn next_action(&mut self) -> anyhow::Result<AppAction> {
        self.items.begin();
        let who = self.chance.random_range(0..OTHERS);
        let other = (who + self.chance.random_range(1..OTHERS)) % OTHERS;
        let (subject, other_id) = (id(who), id(other));
        let (entity, fields, is_new) = if self.chance.random_ratio(1, 2) {
            let fields = key([("FollowerId", &subject), ("FolloweeId", &other_id)]);
            ("Follow", fields, is_new(&mut self.follows, (who, other)))
        } else {
            let fields = key([("UserId", &subject), ("PostId", &other_id)]);
            ("Like", fields, is_new(&mut self.likes, (who, other)))
        };
        let write = if is_new { self.items.create(entity, &fields, &[]) } else { self.items.delete(entity, &fields) };
        Ok(one(&subject, write?))
    }
}

/// Adds the pair if it is new, and removes it if not. True if it was new.
fn is_new(pairs: &mut BTreeSet<(usize, usize)>, pair: (usize, usize)) -> bool {
    let is_new = pairs.insert(pair);
    if !is_new {
        pairs.remove(&pair);
    }
    is_new
}

/// Some ids contain characters that have a meaning in keys: `#` and `%`.
fn id(at: usize) -> String {
    match at % 10 {
        7 => format!("{MARK}{at}#x"),
        8 => format!("{MARK}{at}%23"),
        _ => format!("{MARK}{at}"),
    }
}

#[cfg(test)]
mod tests {
    use derive::write::Action;

    use super::*;

    /// The actions of the famous user, and those of the others.
    fn drawn(seed: u64) -> [String; 2] {
        let mut famous = FamousUser::new(catalogue::schema(), seed);
        let mut of_famous = famous.setting().unwrap();
        of_famous.extend((0..300).map(|_| famous.comment().unwrap()));
        of_famous.extend((1..=3).map(|nth| famous.rename(nth).unwrap()));
        let mut others = Others::new(catalogue::schema(), seed);
        let mut of_others = others.setting().unwrap();
        of_others.extend((0..500).map(|_| others.next_action().unwrap()));
        [of_famous, of_others].map(|actions| format!("{actions:?}"))
    }

    #[test]
    fn the_same_seed_gives_the_same_actions() {
        assert_eq!(drawn(11), drawn(11));
        for (of_one, of_another) in drawn(11).iter().zip(&drawn(12)) {
            assert_ne!(of_one, of_another);
        }
    }

    #[test]
    fn who_follows_already_is_unfollowed_before_they_follow_again() {
        let mut others = Others::new(catalogue::schema(), 1);
        let mut written = BTreeSet::new();
        let mut n_undone = 0;
        for _ in 0..30_000 {
            for step in others.next_action().unwrap().steps {
                let Step::Write(write) = step else { panic!("{step:?}") };
                if write.action == Action::Delete {
                    n_undone += 1;
                    assert!(written.remove(&write.key), "{}", write.key);
                } else {
                    assert!(written.insert(write.key));
                }
            }
        }
        assert!(n_undone > 1_000);
    }

    #[test]
    fn their_items_are_known_by_their_keys() {
        for (pk, theirs) in [
            ("USER#other-7%23x", true),
            ("POST#other-12", true),
            ("USER#u7", false),
            ("USER#another-7", false),
            ("other-7", false),
        ] {
            assert_eq!(is_theirs(&Key::new(pk, "PROFILE")), theirs, "{pk}");
        }
    }
}
