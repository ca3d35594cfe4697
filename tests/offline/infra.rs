//! The templates of `infra/` hold what the code says: tables, keys, indexes, filters, variables, metrics and permissions.

mod alarms;
mod filters;
mod matching;
mod permissions;
mod shared;
mod tables;
mod template;
