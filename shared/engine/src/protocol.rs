//! The protocol's named steps: what the engine does, beside its [guards](derive::guard::Guard), so that the promise
//! holds.
//!
//! A reader can see here why each is there. The simulation takes out one after the other, and must fail each time: a
//! step that nothing needs does not belong here.

/// The step that is left out: only a build for the tests has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut(#[cfg(feature = "mutants")] pub(crate) Option<ProtocolStep>);

impl LeftOut {
    /// Is this step taken?
    #[cfg(feature = "mutants")]
    pub(crate) fn takes(self, step: ProtocolStep) -> bool {
        self.0 != Some(step)
    }

    /// Is this step taken?
    #[cfg(not(feature = "mutants"))]
    #[expect(clippy::unused_self, reason = "with the feature it answers by what it holds")]
    pub(crate) const fn takes(self, _step: ProtocolStep) -> bool {
        true
    }
}

/// Declares the steps, each with what goes wrong without it.
macro_rules! steps {
    ($($(#[doc = $what:literal])+ $name:ident: $without:literal,)+) => {
        /// A step of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ProtocolStep {
            $(
                $(#[doc = $what])+
                #[doc = ""]
                #[doc = concat!("Without it ", $without, ".")]
                $name,
            )+
        }

        impl ProtocolStep {
            /// All steps.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// What goes wrong without it.
            #[must_use]
            pub fn prevents(self) -> &'static str {
                match self {
                    $(Self::$name => $without,)+
                }
            }
        }
    };
}

steps! {
    /// A record requests a refresh of its own item, whoever wrote it.
    OwnRequest: "a write that was decided on something old, and landed late, stays; so does an old item put back",
    /// A record requests a refresh of the items that its old image leads to, and names its old sources, beside those of
    /// the new.
    BothImages: "the mirror of a source that moved or went away stays",
    /// The insert of an item through which targets are found requests a refresh of those targets.
    WayThere: "a target that a rename did not find, since the way to it was missing, keeps the old name",
    /// An item of the application's that has a mirror's key leads a search to the same items as the mirror.
    OccupiedWay: "what a rename finds through the mirror keeps the old name as long as the application's item is there",
    /// An item that comes into an index, or to another place in it, is refreshed.
    LookupKey: "a target that no rename could find, since it was not in the index, keeps the old name",
    /// The record of an item that is not Ripple's, and that leaves the key of a derived item, refreshes the derived
    /// item.
    Vacated: "a derived item that waited for its key is not created",
    /// What an index was searched for is searched for again when it has had time to follow.
    SearchAgain: "an item that the index did not hold yet keeps the old name",
    /// A change of a source makes the job that is at work on it go round once more.
    Circle: "the items that the job was past keep the old name",
    /// Items and their sources are read consistently before a write, but for an item whose write asks that it names the
    /// source.
    ///
    /// The store does; in the simulation it can be made to read what was there a while ago.
    ConsistentRead: "a write based on a stale read stays wrong, because no later record corrects it",
    /// A record's image decides only over the requests of that record, and only as long as it is the item's only
    /// record.
    ImageOfItsOwn: "an old record, delivered again beside a change of the item's source, says that the item is in step",
    /// An item that is written back and forth is not written any more, and the change is parked.
    BackAndForth: "derivations that disagree about an item write it without end",
    /// A change whose effects add up to nothing takes its receipt, or moves the watermark, all the same.
    NetZeroProof: "one half of +1 and -1 that is delivered again in another batch counts alone",
    /// A record that stands twice in a batch counts once.
    OnceABatch: "it counts twice under watermarks, and under receipts is refused as two writes on one item",
    /// Reasons of a cancelled transaction are read by position.
    ReasonsByPosition: "the wrong changes are taken for being in",
    /// Under watermarks, a change counts only if the counter's watermark is below its number.
    BelowFirst: "a change that is the last one of a batch counts again when it comes again",
    /// Under watermarks, what the watermark has passed is dropped from an update that failed, and the rest is sent
    /// again.
    DropPassed: "changes are taken for applied when only some of their batch are",
    /// Under watermarks, each stream shard has a watermark of its own on a counter.
    MarkPerShard: "changes of one shard are taken for applied because another shard's number is higher",
    /// Under watermarks, a stream shard keeps the number of counter shards that it began with.
    PinShards: "a change that comes again after a deployment goes to another counter item, and counts again",
    /// Under watermarks, a record that cannot be read is among its shard's exceptions.
    Exceptions: "a record that was parked and redriven counts again when it comes again and can be read",
    /// Under watermarks, a batch reads the exceptions up to its last sequence number.
    WholeRange: "the last record of a batch counts although it was parked, and again by its redrive",
    /// Under watermarks, an exception is kept as long as its record may come again.
    ExceptionsKept: "a record that was parked and redriven counts again when it comes again and can be read",
    /// Under watermarks, what is among the exceptions is redriven when no invocation from before its parking is at
    /// work.
    RedriveWait: "an invocation that began before the record was parked counts it beside the redrive",
    /// Under watermarks, a redrive of an exception also waits for what such an invocation sent before it ended.
    RedriveWaitLate: "what a dead invocation sent before the record was parked lands beside the redrive",
    /// Under watermarks, a redrive leaves out what a counter may count already.
    LeaveUnsure: "a record that was counted before it was parked counts again by its redrive",
    /// Under watermarks, the redrive of a change that is parked for one counter sets the watermark if it is gone.
    RedriveMark: "a record whose counter an operator deleted counts again when it comes again",
    /// Under watermarks, a counter without a watermark does not count an unsure change only if the change is young.
    YoungWithoutMark: "a record counts again by its redrive after its watermark was taken away",
    /// Under watermarks, what cannot be read is parked as uncounted only if no instance can be at work of another
    /// release, or with another catalogue.
    OneReader: "an instance that can read the record counts it beside the redrive",
    /// Under watermarks, what cannot be read is uncounted only if it was written when no instance can have been at work
    /// any more of another release.
    YoungerThanOthers: "a record that an earlier release counted counts again by its redrive",
    /// Under watermarks, a watermark is removed when all that it has passed is older than the horizon.
    PruneLate: "a change that comes again finds no watermark, and counts again",
    /// Under watermarks, a counter of zero is deleted only without watermarks.
    ZeroWithoutMarks: "a change that comes again finds no watermark, and counts again",
    /// Under watermarks, a counter of zero is deleted only if no watermark has moved since it was read.
    ZeroRevision: "a counter that counted one more and one less meanwhile is deleted with its watermarks",
    /// Under watermarks, a replay applies nothing, since the stream may still bring it.
    ReplayBehind: "a record that is replayed ahead of the mapping moves the watermark past those that are still to come",
    /// A change older than the horizon is never applied.
    Horizon: "a record that is replayed after its receipt has expired counts again",
    /// A change whose time is ahead of the clock is never applied: its age is unknown.
    NotAhead: "a record whose time is always ahead counts again when it is delivered after its receipt has expired",
    /// A parked change takes its receipt, or moves the watermark, with it.
    ProofOfParking: "a change that was parked and redriven counts again when it is delivered again",
    /// A cascade is started once for a removal, under a receipt.
    StartOnce: "a removal that is delivered again deletes what came later without its owner",
    /// A cascade begins when all that was written before the removal has been seen.
    Settle: "what hangs on an item that was moved by a removal and a put is deleted in between",
    /// A cascade waits again when it has listed what hangs.
    SettleAgain: "what was written to an owner that came back under another key is deleted before that owner is seen",
    /// Where nobody knows how far the functions are, a cascade begins only while they handle pulses, and have done so
    /// since before it or for the settling time.
    Pulse: "a cascade deletes what hangs on an item that was moved before a day without a working function",
    /// A function that handles a pulse after most of a day without one puts the mark of a possible loss before it keeps
    /// that.
    PulseGap: "a cascade deletes what hangs on an item whose put the stream dropped while no function was at work",
    /// A cascade lists what an index shows only where the item itself, read consistently, is still to be found there.
    StillFound: "an item that moved to another owner, and that a lagging index shows under the removed one, is deleted",
    /// The response names the lowest record that is not done.
    LowestUndone: "a record for which there was no time never comes again",
    /// A verification looks a second time when the functions have handled what was written before.
    HandledFirst: "a change that is on its way is reported as a finding",
    /// Where the functions' positions are unknown, a count is decided when the ledger has proof of each of its changes
    /// that the stream still holds.
    ProvenIn: "a change that a shard holds back is added by a repair, and counts again when the shard catches up",
    /// What was written since the functions were waited for, up to the end of the second look, is no finding.
    UntouchedSince: "a newer change that is on its way is reported as a finding",
    /// A record says more of what an item adds than a scan, whichever comes first.
    RecordWins: "an item that changed while the table was read counts as it was",
    /// What a parked change or a job will still change is no finding.
    Underway: "what waits for an operator or a job is reported as a finding",
    /// A repair of a count takes a receipt of its run.
    RepairOnce: "a repair whose answer was lost adds twice",
    /// An instance publishes which derivations it has before it handles a batch.
    PublishFirst: "what an instance handles that lacks a derivation is missing of its counts, and nobody learns that it must be filled",
    /// What is new is filled when no instance that lacks it can be at work any more.
    ReadyFirst: "what such an instance handles when the backfill is over is missing, though all is marked as filled",
    /// A change that was written before a derivation's birth mark is not counted for it by itself.
    BirthMark: "what an instance without the derivation handled, and a backfill counted, counts again when it is replayed",
}
