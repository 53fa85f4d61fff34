//! Definitions of services from files.

use std::path::{Path, PathBuf};

use prost_reflect::DescriptorPool;
use protox::Compiler;
use weigh_model::protocol::Invalid;

/// Compiles files. Imports are looked for in `folders`, and then in the folders of the files.
///
/// # Errors
/// A file that cannot be read or compiled: its name, the line, and what to do.
pub(super) fn of_files(files: &[&str], folders: &[&str]) -> Result<DescriptorPool, Invalid> {
    let mut includes: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    for folder in &includes {
        if !folder.is_dir() {
            let problem = format!("{} is not a folder", folder.display());
            return Err(Invalid::new("grpc.import_paths", problem, "name a folder that exists"));
        }
    }
    for file in files {
        let path = Path::new(file);
        if let Err(error) = std::fs::metadata(path) {
            let problem = format!("{file} cannot be read: {error}");
            return Err(Invalid::new("grpc.proto", problem, "name a file that exists"));
        }
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        if !includes.contains(&folder) {
            includes.push(folder);
        }
    }
    let compiled = Compiler::new(&includes).and_then(|mut compiler| {
        for file in files {
            compiler.open_file(named(file))?;
        }
        Ok(compiler.descriptor_pool())
    });
    compiled.map_err(|error| {
        let fix = match error.is_file_not_found() {
            true => "add the folder of the imported file (--import-path DIR)",
            false => "correct the file",
        };
        // This form of the error has the file and the line.
        Invalid::new("grpc.proto", format!("{error:?}"), fix)
    })
}

/// A file without a folder is in the working folder, which the compiler knows as `.`.
fn named(file: &str) -> PathBuf {
    let path = Path::new(file);
    let has_folder = path.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    if has_folder { path.to_owned() } else { Path::new(".").join(path) }
}
