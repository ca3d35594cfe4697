//! D-20 and D-21: paths of folders, files and employees.

use super::{
    Recount,
    table::{Address, Plain, PlainTable, escaped, home, segment},
};

/// Most levels of folders and of employees.
const FOLDERS_MAX: usize = 64;
const EMPLOYEES_MAX: usize = 27;

pub(crate) const COVERED: [&str; 3] = ["folder-path", "file-path", "employee-path"];

pub(crate) fn compare(table: &PlainTable, recount: &mut Recount) {
    for folder in table.each("Folder") {
        let derived = folder_path(table, folder.at, FOLDERS_MAX).map(Plain::Text);
        recount.compare("folder-path", folder.at, folder.item.get("Path").cloned(), derived);
    }
    for file in table.each("FileDetail") {
        let folder = file.text("FolderId").and_then(|id| folder_path(table, &home("FOLDER", id), FOLDERS_MAX));
        let derived = folder.zip(file.text("Name")).map(|(above, name)| format!("{above}/{}", segment(name)));
        recount.compare("file-path", file.at, file.item.get("Path").cloned(), derived.map(Plain::Text));
    }
    for employee in table.each("Employee") {
        let derived = employee_path(table, employee.at).map(Plain::Text);
        recount.compare("employee-path", employee.at, employee.item.get("Path").cloned(), derived);
    }
}

/// The names from the root down. A folder without a name, or whose parents have no end, has none.
fn folder_path(table: &PlainTable, at: &Address, levels: usize) -> Option<String> {
    let folder = table.get("Folder", at).filter(|_| levels > 0)?;
    let name = segment(folder.text("Name")?);
    if !folder.item.contains_key("ParentId") {
        return Some(format!("/{name}"));
    }
    let above = folder_path(table, &home("FOLDER", folder.text("ParentId")?), levels - 1)?;
    Some(format!("{above}/{name}"))
}

/// The ids from the top down.
pub(crate) fn employee_path(table: &PlainTable, at: &Address) -> Option<String> {
    path_below(table, at, EMPLOYEES_MAX)
}

fn path_below(table: &PlainTable, at: &Address, levels: usize) -> Option<String> {
    let employee = table.get("Employee", at).filter(|_| levels > 0)?;
    let id = segment(employee.id("EmployeeId"));
    if !employee.item.contains_key("ManagerId") {
        return Some(format!("/{id}"));
    }
    let manager = format!("EMPLOYEE#{}", escaped(employee.text("ManagerId")?));
    let above = path_below(table, &(at.0.clone(), manager), levels - 1)?;
    Some(format!("{above}/{id}"))
}
