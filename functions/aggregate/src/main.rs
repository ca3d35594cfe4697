//! Keeps counters in step with the stream: the additive derivations.

use lambda_runtime::Error;
use runtime::{handler::Function, lambda};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda::run(Function::Aggregate).await
}
