//! The protocol's named steps: what the engine does, besides its [guards](derive::guard::Guard), to keep its
//! guarantees.
//!
//! They show the reader why each step exists. The simulation omits one step at a time, and must fail each time: a step
//! that is not needed does not belong here.

/// The omitted step: only test builds have one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut(#[cfg(feature = "mutants")] pub(crate) Option<ProtocolStep>);

impl LeftOut {
    /// True if this step is taken.
    #[cfg(feature = "mutants")]
    pub(crate) fn takes(self, step: ProtocolStep) -> bool {
        self.0 != Some(step)
    }

    /// True if this step is taken.
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
    /// A record requests a refresh of the items that its old image leads to, and names its old sources, as well as
    /// those of its new image.
    BothImages: "the mirror of a source that moved or went away stays",
    /// The insert of an item that leads a search to targets requests a refresh of those targets.
    WayThere: "a target that a rename did not find, since the way to it was missing, keeps the old name",
    /// An application item under a mirror's key leads a search to the same items as the mirror.
    OccupiedWay: "what a rename finds through the mirror keeps the old name as long as the application's item is there",
    /// An item that enters an index, or moves in it, is refreshed.
    LookupKey: "a target that no rename could find, since it was not in the index, keeps the old name",
    /// When an item that is not Ripple's leaves the key of a derived item, its record refreshes the derived item.
    Vacated: "a derived item that waited for its key is not created",
    /// A search of an index is repeated when the index has had time to catch up.
    SearchAgain: "an item that the index did not hold yet keeps the old name",
    /// An item whose definition changes at a known time is refreshed then.
    Later: "the sum of the last days keeps what has left them",
    /// A change of a source makes its running job go round once more.
    Circle: "the items that the job was past keep the old name",
    /// Items and their sources are read consistently before a write. An item is not read if the write's condition
    /// requires that it names the source.
    ///
    /// The store reads consistently; the simulation can make it return older items.
    ConsistentRead: "a write based on a stale read stays wrong, because no later record corrects it",
    /// A record's image decides only about the requests of that record, and only if it is the item's only record in the
    /// batch.
    ImageOfItsOwn: "an old record, delivered again beside a change of the item's source, says that the item is in step",
    /// An item that is written back and forth is no longer written, and the change is parked.
    BackAndForth: "derivations that disagree about an item write it without end",
    /// A change whose effects cancel out still writes its receipt, or moves the watermark.
    NetZeroProof: "one half of +1 and -1 that is delivered again in another batch counts alone",
    /// A record that occurs twice in a batch counts once.
    OnceABatch: "it counts twice under watermarks, and under receipts is refused as two writes on one item",
    /// Reasons of a cancelled transaction are read by position.
    ReasonsByPosition: "the wrong changes are taken for being in",
    /// Under watermarks, a change counts only if the counter's watermark is below its number.
    BelowFirst: "a change that is the last one of a batch counts again when it comes again",
    /// Under watermarks, after a failed update the changes that the watermark has passed are dropped, and the rest is
    /// sent again.
    DropPassed: "changes are taken for applied when only some of their batch are",
    /// Under watermarks, each stream shard has a watermark of its own on a counter.
    MarkPerShard: "changes of one shard are taken for applied because another shard's number is higher",
    /// Under watermarks, a change is parked on the item on which its stream shard counts: not at a home that has spread
    /// meanwhile.
    ParkedWhereItCounts: "a change that is counted on a satellite is also parked at home, and its redrive counts it again",
    /// Under watermarks, an engine remembers the satellite for each stream shard separately.
    SatelliteByShard: "a stream shard that counts at home also counts on a satellite, so a redelivered change is counted twice",
    /// Under watermarks, an engine takes a counter for spread only when a failed update shows it.
    SeenToHaveSpread: "an engine that made a counter spread adds to a satellite what the watermark at home has passed",
    /// Under watermarks, the record of a home that has spread requests a refresh of the display.
    HomeRequests: "what is counted at home after the counter spread is not displayed",
    /// Under watermarks, a home that spreads loses its `Shown` flag.
    SpreadingRequests: "what an invocation counted at home that ended before it wrote the display is not displayed",
    /// Under watermarks, the counting function displays a hot counter that still has the `Shown` flag.
    HotWithFlag: "what an invocation counted that ended before it wrote the display is not displayed",
    /// Under watermarks, a home that has spread is never deleted.
    HomeStays: "a stream shard that counts on a satellite also counts on a new home, so a redelivered change is counted twice",
    /// Under watermarks, a redrive of an unsure change asks home and satellites for the watermark.
    AsksSatellites: "a change that is counted on a satellite is counted again by its redrive",
    /// Under watermarks, an unreadable record is among its shard's exceptions.
    Exceptions: "a record that was parked and redriven counts again when it comes again and can be read",
    /// Under watermarks, a batch reads the exceptions up to its last sequence number.
    WholeRange: "the last record of a batch counts although it was parked, and again by its redrive",
    /// Under watermarks, an exception is kept as long as its record may be redelivered.
    ExceptionsKept: "a record that was parked and redriven counts again when it comes again and can be read",
    /// Under watermarks, an exception is redriven only when no invocation from before its parking is running.
    RedriveWait: "an invocation that began before the record was parked counts it beside the redrive",
    /// Under watermarks, a redrive of an exception also waits for late calls of such an invocation.
    RedriveWaitLate: "what a dead invocation sent before the record was parked lands beside the redrive",
    /// Under watermarks, a redrive omits amounts that a counter may already count.
    LeaveUnsure: "a record that was counted before it was parked counts again by its redrive",
    /// Under watermarks, the redrive of a change that is parked for one counter sets a missing watermark.
    RedriveMark: "a record whose counter an operator deleted counts again when it comes again",
    /// Under watermarks, a counter without a watermark proves that an unsure change is not counted only if the change
    /// is young.
    YoungWithoutMark: "a record counts again by its redrive after its watermark was taken away",
    /// Under watermarks, an unreadable record is parked as uncounted only if no instance of another release, or with
    /// another catalogue, can be running.
    OneReader: "an instance that can read the record counts it beside the redrive",
    /// Under watermarks, an unreadable record is uncounted only if it was written when no instance of another release
    /// could still be running.
    YoungerThanOthers: "a record that an earlier release counted counts again by its redrive",
    /// Under watermarks, a watermark is removed when all changes that it has passed are older than the horizon.
    PruneLate: "a change that comes again finds no watermark, and counts again",
    /// Under watermarks, a counter of zero is deleted only if it has no watermarks.
    ZeroWithoutMarks: "a change that comes again finds no watermark, and counts again",
    /// Under watermarks, a counter of zero is deleted only if no watermark has moved since it was read.
    ZeroRevision: "a counter that counted one more and one less meanwhile is deleted with its watermarks",
    /// Under watermarks, a replay applies nothing, because the stream may still deliver it.
    ReplayBehind: "a record that is replayed ahead of the mapping moves the watermark past those that are still to come",
    /// A change older than the horizon is never applied.
    Horizon: "a record that is replayed after its receipt has expired counts again",
    /// A change whose time is ahead of the clock is never applied: its age is unknown.
    NotAhead: "a record whose time is always ahead counts again when it is delivered after its receipt has expired",
    /// The transaction that parks a change also writes its receipt, or moves the watermark.
    ProofOfParking: "a change that was parked and redriven counts again when it is delivered again",
    /// A removal starts its cascade once, under a receipt.
    StartOnce: "a removal that is delivered again deletes what came later without its owner",
    /// A cascade begins when all changes from before the removal have been handled.
    Settle: "what hangs on an item that was moved by a removal and a put is deleted in between",
    /// A cascade waits again after it has listed the dependent items.
    SettleAgain: "what was written to an owner that came back under another key is deleted before that owner is seen",
    /// If the functions' progress is unknown, a cascade begins only while they handle heartbeats (pulses), and have
    /// done so since before it or for the grace period.
    Pulse: "a cascade deletes what hangs on an item that was moved before a day without a working function",
    /// A function that handles a heartbeat after most of a day without one writes the mark of a possible loss before it
    /// records the heartbeat.
    PulseGap: "a cascade deletes what hangs on an item whose put the stream dropped while no function was at work",
    /// A cascade lists an item from an index only if the item itself, read consistently, still matches the search.
    StillFound: "an item that moved to another owner, and that a lagging index shows under the removed one, is deleted",
    /// The response names the lowest record that is not done.
    LowestUndone: "a record for which there was no time never comes again",
    /// A verification checks a second time, when the functions have handled everything from before the first.
    HandledFirst: "a change that is on its way is reported as a finding",
    /// If the functions' positions are unknown, a count is decided only when the ledger proves each of its changes that
    /// the stream still has.
    ProvenIn: "a change that a shard holds back is added by a repair, and counts again when the shard catches up",
    /// An item that was written after the wait for the functions, up to the end of the second check, is no finding.
    UntouchedSince: "a newer change that is on its way is reported as a finding",
    /// A record of an item overrides the scan of it, whichever comes first.
    RecordWins: "an item that changed while the table was read counts as it was",
    /// A difference that a parked change or a job will still change is no finding.
    Underway: "what waits for an operator or a job is reported as a finding",
    /// A repair of a count writes a receipt of its run.
    RepairOnce: "a repair whose answer was lost adds twice",
    /// An instance publishes its derivations before it handles a batch.
    PublishFirst: "what an instance handles that lacks a derivation is missing of its counts, and nobody learns that it must be filled",
    /// A new derivation is filled when no instance without it can be running.
    ReadyFirst: "what such an instance handles when the backfill is over is missing, though all is marked as filled",
    /// A record does not count a change from before the derivation's effective time.
    BirthMark: "what an instance without the derivation handled, and a backfill counted, counts again when it is replayed",
}
