//! Prints the page of the shipped table's design, `examples/social/table-design.md`.

use std::{
    error::Error,
    io::{Write as _, stdout},
};

use tokio::runtime::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let page = Builder::new_current_thread().build()?.block_on(table_design::page())?;
    Ok(stdout().write_all(page.as_bytes())?)
}
