//! Descriptions of tables in files.
