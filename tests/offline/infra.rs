//! The templates of `infra/` agree with the code: tables, keys, indexes, filters, variables, metrics and permissions.

mod alarms;
mod filters;
mod levers;
mod names;
mod permissions;
mod several;
mod shared;
mod tables;
pub(crate) mod template;
