//! What guards are for.

/// Declares the purposes, each with the anomaly that its guard prevents.
macro_rules! purposes {
    ($($(#[doc = $what:literal])+ $name:ident: $prevents:literal,)+) => {
        /// What a guard is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Purpose {
            $(
                $(#[doc = $what])+
                #[doc = ""]
                #[doc = concat!("Without it ", $prevents, ".")]
                $name,
            )+
            /// The condition of an application's own write. The service never sends it.
            Application,
        }

        impl Purpose {
            /// All purposes for which the service sends a guard.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// What goes wrong without the guard.
            #[must_use]
            pub fn prevents(self) -> &'static str {
                match self {
                    $(Self::$name => $prevents,)+
                    Self::Application => "the application decides on an old value",
                }
            }
        }
    };
}

purposes! {
    /// On a receipt: there is none yet.
    Receipt: "a change that is delivered again is counted again",
    /// On the record of the ledger's kind: none is recorded yet.
    LedgerKind: "two functions that are configured with different ledgers both begin to count",
    /// On a new job: its source has none.
    NewJob: "a job that began meanwhile is replaced: it forgets that it was paused, or that its source changed again",
    /// On a partial update: the item exists, and is of the entity that was read.
    Update: "an update that lands after the item's removal makes a torso: an item with a copied name and nothing else",
    /// On a derived item that is made, changed or removed: under its key is what was read, nothing or such an item.
    MirrorType: "an application's item of another type that takes a derived item's key meanwhile is overwritten or deleted",
    /// On the deletion of a parked change that is redriven: it is still parked.
    StillParked: "two redrives of a change apply it twice",
    /// On a write of a bucket: its least and greatest value are as they were read.
    Bucket: "of two writers of a bucket, the second undoes what the first set as its least or greatest",
    /// On an owner, in the transaction that deletes an item of the owner: the owner does not exist.
    OwnerAbsent: "a cascade deletes what hangs on an item that exists again",
    /// On what a cascade deletes: it is as it was listed, and its attributes still name the owner.
    StillTheirs: "a cascade deletes what was given to somebody else meanwhile",
    /// On a job: its revision is the one that was read.
    Job: "a page of a job that read an old value moves on past the restart that a newer change asked for",
    /// On a cascade that waits: it still waits, and for the time that was read.
    Wait: "a sweep that read a cascade's first wait ends its second one",
    /// On an item that a fan-out writes without reading it: it still names the source.
    UnreadTarget: "an item that an index still shows gets a copy of what it does not name any more",
    /// On an item whose index keys are repaired: what they are made of is as it was read, and so are they.
    IndexKeys: "index keys are made of what was written over meanwhile",
    /// On a counter that is added to: under its key is a counter, or nothing.
    CounterType: "an application's item that has a counter's key is made a counter",
    /// On the deletion of a counter of a dropped derivation: its value is as it was read.
    DroppedCounter: "a count that comes in while its counter is deleted is lost",
    /// On the deletion of a counter that came to zero: it is still zero.
    StillZero: "a count that comes in while its counter of zero is deleted is lost",
    /// On an item that is listed as unreadable or taken off that list: it is as it was judged.
    Listed: "an entry that was decided before the item was mended lands later and stays, and hides that the item differs",
    /// On the entry of a derived item that waits for its key, when the wait is over: it is as it was read.
    KeyWait: "a source that was named for a mirror meanwhile is forgotten, and the mirror is not created when its key is free",
    /// On a mark of a possible loss that a verification clears: it is as it was read.
    LossMark: "a loss that was seen while the table was verified is forgotten",
    /// On a counter, or a bucket: its watermark of the stream shard is below the first change that the write adds.
    Watermark: "a change that is delivered again is counted again, as is one that another invocation counts beside this one",
    /// On a counter whose old watermarks are removed: each is as it was read.
    OldWatermark: "a watermark that moves while it is taken for old is removed, and what it covers is counted again",
    /// On an item that shows a count, written by the function that counted: the item is of its entity, and shows no later
    /// revision of the counter.
    Shown: "a count that lands late replaces a newer one, until the item's record is handled",
    /// On a stream shard's item: no number of counter shards is pinned for the derivation yet.
    Pin: "two invocations pin different numbers of counter shards, and a change that comes again goes to another counter",
    /// On an exception of a stream shard: there is none for the change yet.
    Exception: "a change that was parked and redriven is parked again by a call that lands late, and counts twice",
    /// On the registry of derivations: its revision is the one that was read.
    Registry: "what another function or command registered meanwhile is overwritten",
    /// On the position of the sweep: it stands where it was read.
    SweepRound: "a sweep that comes late moves the next round ahead, which then does not compare a part of the table",
    /// On the note of a suspect: it is the one that was read; on a new note, there is none.
    Suspect: "a suspect is taken off the list or noted anew while it still differs, and real drift is not reported",
    /// In the transaction of a repair: no other run has begun since.
    RepairRight: "two runs that found the same both add it",
}
