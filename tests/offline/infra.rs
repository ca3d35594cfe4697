//! The templates of `infra/` hold what the code says: tables, keys, indexes, filters, variables, metrics and permissions.

#[path = "infra/alarms.rs"]
mod alarms;
#[path = "infra/filters.rs"]
mod filters;
#[path = "infra/matching.rs"]
mod matching;
#[path = "infra/permissions.rs"]
mod permissions;
#[path = "infra/shared.rs"]
mod shared;
#[path = "infra/tables.rs"]
mod tables;
#[path = "infra/template.rs"]
mod template;
