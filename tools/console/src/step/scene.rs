//! Guided scenes: an anomaly of the platform or of a client, step by step, on items that the scene writes.
//!
//! A scene fits any table: its items are built from the declarations, and it watches the first value of the table that
//! displays the anomaly. Nothing is prepared: the scene reads the value and its definition after each step.

pub(crate) mod act;
pub(crate) mod cast;
pub(crate) mod page;

use self::cast::Subject;

/// A scene.
#[derive(Debug)]
pub(crate) struct Scene {
    /// Its name in the page's address.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The anomaly, and why it does no harm.
    pub(crate) about: &'static str,
    pub(crate) subject: Subject,
    pub(crate) steps: &'static [SceneStep],
}

/// A step of a scene: its description, and its action.
#[derive(Debug)]
pub(crate) struct SceneStep {
    pub(crate) text: &'static str,
    pub(crate) act: SceneAct,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SceneAct {
    /// The application writes the counted item.
    Write,
    /// The record of the item is delivered once.
    Deliver,
    /// It is delivered to two instances at the same time.
    DeliverAtOnce,
    /// It is delivered, and the invocation is killed after its first write.
    DeliverAndKill,
    /// The first delivered record is redelivered.
    Again,
    /// Everything else is delivered, with its effects.
    LetThrough,
    /// The application changes the source of the copy, to another value each time.
    ChangeSource,
    /// A client reads the item with the derived value.
    Read,
    /// A client overwrites it with the version that was read.
    PutBack,
    /// A client deletes it.
    Delete,
    /// A client overwrites the derived value.
    Overwrite,
    /// A client replaces the counter by text.
    SpoilCounter,
    /// A client removes that text.
    RemoveValue,
    /// An operator redrives the parked change.
    Redrive,
    /// A client adds to the counter.
    AlterCounter,
    /// An operator repairs the findings of a verification.
    Repair,
}

use SceneAct as Act;

const fn step(text: &'static str, act: SceneAct) -> SceneStep {
    SceneStep { text, act }
}

/// All scenes.
pub(crate) const SCENES: [Scene; 9] = [
    Scene {
        id: "repeated",
        title: "A record is delivered twice",
        about: "Lambda delivers at least once: a batch is redelivered when its answer is lost. A plain ADD would count the change twice.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("Lambda delivers its record.", Act::Deliver),
            step("Lambda delivers the same record again.", Act::Again),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "at-once",
        title: "Two invocations get the same record at once",
        about: "An invocation that Lambda gave up may still run when the next one begins. Whoever comes second finds the change counted.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("Two instances of the function get its record at the same time.", Act::DeliverAtOnce),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "killed",
        title: "An invocation is killed halfway",
        about: "An invocation ends at its time limit, or with its machine: some writes are done, and it is unknown which. The record is redelivered.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step(
                "Lambda delivers its record, and the invocation is killed after its first write.",
                Act::DeliverAndKill,
            ),
            step("Lambda delivers the record again.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "old-record",
        title: "An old record is delivered after a newer one",
        about: "A record says only which item to refresh, never what to write. So an old record cannot bring an old value back.",
        subject: Subject::Copy,
        steps: &[
            step("The application changes the source of a copied value.", Act::ChangeSource),
            step("Lambda delivers the record, and the copy follows.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
            step("The application changes the source once more.", Act::ChangeSource),
            step("Lambda delivers that record.", Act::Deliver),
            step("The record of the first change is redelivered, after the newer one.", Act::Again),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "deleted",
        title: "A client deletes a mirror",
        about: "A mirror is an item that Ripple alone writes. The record of its removal makes Ripple refresh it, and create it again.",
        subject: Subject::Mirror,
        steps: &[
            step("A client deletes the mirror.", Act::Delete),
            step("Lambda delivers the record of the removal.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "overwritten",
        title: "A client overwrites a copied value",
        about: "The record of the write makes Ripple refresh the item. It reads the source, and writes what differs.",
        subject: Subject::Copy,
        steps: &[
            step("A client overwrites the copy.", Act::Overwrite),
            step("Lambda delivers the record of that write.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "put-back",
        title: "A client puts back an item that it read before a change",
        about: "The client read the item, the source changed, and the client writes the item whole, with the old copy in it.",
        subject: Subject::Copy,
        steps: &[
            step("A client reads the item with the copy.", Act::Read),
            step("The application changes the source of the copy.", Act::ChangeSource),
            step("Lambda delivers the record, and the copy follows.", Act::LetThrough),
            step("The client puts back the item that it read.", Act::PutBack),
            step("Lambda delivers the record of that write.", Act::Deliver),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "parked",
        title: "A change can never be applied",
        about: "The counter holds text instead of a number. The change is parked, whole, with its cause; the other records go on.",
        subject: Subject::Count,
        steps: &[
            step("A client puts text in the place of the counter.", Act::SpoilCounter),
            step("The application writes an item that counts.", Act::Write),
            step("Lambda delivers its record.", Act::Deliver),
            step("All other records are delivered: nothing waits for the parked one.", Act::LetThrough),
            step("An operator removes the value that cannot be read, and no other attribute.", Act::RemoveValue),
            step("The operator redrives the parked change.", Act::Redrive),
            step("All other records are delivered.", Act::LetThrough),
        ],
    },
    Scene {
        id: "counter",
        title: "A client alters a counter",
        about: "A counter does not correct itself, because Ripple only adds to it. A verification finds the difference, and a repair adds it.",
        subject: Subject::Count,
        steps: &[
            step("The application writes an item that counts.", Act::Write),
            step("All records are delivered.", Act::LetThrough),
            step("A client adds 5 to the counter.", Act::AlterCounter),
            step("All records are delivered: the wrong number stays.", Act::LetThrough),
            step("The stream flows, and an operator repairs what a verification of this count finds.", Act::Repair),
        ],
    },
];
