//! Chores of the project: the data set, the benchmark against other tools, the checks.

mod dataset;

fn main() -> anyhow::Result<()> {
    dataset::write(std::path::Path::new("."))
}
