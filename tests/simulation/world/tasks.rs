//! The tasks of a run: invocations and operators' commands, with what the platform keeps of each.

use std::sync::Arc;

use derive::family::Family;
use engine::batch::Handled;
use serde_json::Value;
use store::faulty::Faulty;
use support::record::Window;

use crate::{
    caller::Caller,
    executor::{Gone, Task},
    permissions::Role,
    platform::mapping::Batch,
    world::process::TurnStore,
};

/// Most tasks at once.
pub(crate) const TASKS_MAX: usize = 8;

/// The families of a function that runs everything, and of the operator's commands.
pub(crate) const BOTH: [Family; 2] = [Family::Additive, Family::LevelTriggered];

/// What a task ends with: the response that the platform reads, and the engine's account.
pub(crate) type Answer = Result<Option<(Value, Handled)>, String>;

pub(crate) struct Running {
    pub(crate) task: Task<Answer>,
    pub(crate) name: Arc<str>,
    pub(crate) store: Arc<Faulty<Caller>>,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) gone: Gone,
    pub(crate) deadline_ms: u64,
    /// The process of a function that handles it.
    pub(crate) process: Option<Arc<TurnStore>>,
    pub(crate) is_old: bool,
}

/// A caller of the store whose task is about to start.
pub(crate) struct NewCaller {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    pub(crate) gone: Gone,
    pub(crate) store: Arc<Faulty<Caller>>,
    pub(crate) deadline_ms: u64,
    /// The process of a function that handles it.
    pub(crate) process: Option<Arc<TurnStore>>,
    /// Is it an instance of the old version?
    pub(crate) is_old: bool,
}

/// What the platform delivered to an invocation.
pub(crate) struct Delivery {
    pub(crate) mapping: usize,
    pub(crate) batch: Batch,
    pub(crate) window: Option<Window>,
    /// Does the platform still wait for the response?
    pub(crate) is_awaited: bool,
}
