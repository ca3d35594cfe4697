//! Keeps copies, mirrors and displays in step with the stream: the level-triggered derivations.

use lambda_runtime::Error;
use runtime::{handler::Function, lambda};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda::run(Function::Propagate).await
}
