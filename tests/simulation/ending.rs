//! The end of a run: the deployment is completed, what is wrong is repaired, and planted drifts are found.

mod convergence;
mod deployment;
mod drifts;
mod repairs;
