//! The protocol's named steps: what the engine does, beside its guards, so that the promise holds.
//!
//! A reader can see here why each is there. The simulation takes out one after the other, and must fail each time: a
//! step that nothing needs does not belong here.

/// A step of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolStep {
    /// A record rings the bell of its own item, whoever wrote it.
    ///
    /// Without it a write that was decided on something old, and landed late, stays; so does an old item put back.
    OwnBell,
    /// A record rings the items that its old image leads to, and names its old sources, beside those of the new.
    ///
    /// Without it the mirror of a source that moved or went away stays.
    BothImages,
    /// The insert of an item through which targets are found rings those targets.
    ///
    /// Without it a target that a rename did not find, since the way to it was missing, keeps the old name.
    WayThere,
    /// A record's image decides only over the bells of that record, and only as long as it is the item's only record.
    ///
    /// Without it an old record, delivered again beside a change of the item's source, says that the item is in step.
    ImageOfItsOwn,
    /// After a guard failed, sources are read anew.
    ///
    /// Without it the item is written again from what was read before the other writer came.
    FreshSources,
    /// A change whose effects add up to nothing within its chunk takes its receipt, or is passed, all the same.
    ///
    /// Without it one half of +1 and -1 that is delivered again in another batch counts alone.
    NetZeroProof,
    /// A record that stands twice in a batch counts once.
    ///
    /// Without it the second is refused as a second write on one receipt, or counted with the first.
    OnceABatch,
    /// Reasons of a cancelled transaction are read by position.
    ///
    /// Without it the wrong changes are taken for being in.
    ReasonsByPosition,
    /// Under the checkpoint, a chunk holds all that the checkpoint passes, in the order of the stream.
    ///
    /// Without it changes are passed that were not applied.
    ContiguousChunks,
    /// Under the checkpoint, what waits lets nothing behind it go before.
    ///
    /// Without it changes are passed that are still waiting.
    NobodyOvertakes,
    /// After the checkpoint's guard failed, it is read again, and what it has passed is dropped.
    ///
    /// Without it a transaction whose answer was lost is sent for ever, or its changes are taken for applied when
    /// another invocation moved the checkpoint.
    ReadAgain,
    /// A change older than the horizon is never applied.
    ///
    /// Without it a record that is replayed after its receipt has expired counts again.
    Horizon,
    /// A parked change takes its receipt, or is passed, with it.
    ///
    /// Without it a change that was parked and redriven counts again when it is delivered again.
    ProofOfParking,
    /// The response names the lowest record that is not done.
    ///
    /// Without it a record that ran out of time never comes again.
    LowestUndone,
}

impl ProtocolStep {
    /// All steps.
    pub const ALL: [Self; 14] = [
        Self::OwnBell,
        Self::BothImages,
        Self::WayThere,
        Self::ImageOfItsOwn,
        Self::FreshSources,
        Self::NetZeroProof,
        Self::OnceABatch,
        Self::ReasonsByPosition,
        Self::ContiguousChunks,
        Self::NobodyOvertakes,
        Self::ReadAgain,
        Self::Horizon,
        Self::ProofOfParking,
        Self::LowestUndone,
    ];
}
