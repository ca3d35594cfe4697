//! Runs all derivations in one function, for a stream that has one reader left.

use lambda_runtime::Error;
use runtime::{handler::Function, lambda};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda::run(Function::Combined).await
}
