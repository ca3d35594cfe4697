//! Prints the functions for the reads of the shipped table, as `ripple types --language rust` does.

use std::{env, error::Error, fs, path::Path};

use types::{Language, types};

const MANIFEST: &str = "../ripple.toml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={MANIFEST}");
    let (schema, catalogue) = manifest::load(&fs::read_to_string(MANIFEST)?)?;
    let folder = env::var("OUT_DIR")?;
    fs::write(Path::new(&folder).join("reads.rs"), types(Language::Rust, &schema, &catalogue))?;
    Ok(())
}
