//! D-21: the paths of employees, and the chart that lists each employee under their path.

use derive::{
    declaration::{link::Link, mirror::Mirror},
    derivation::Derivation,
    kinds::path::TreePath,
};

use crate::found;

/// Most levels of employees, the top included. 27 ids of 36 characters with their slashes fit in the 1,024 bytes of a
/// sort key.
const EMPLOYEE_DEPTH_MAX: usize = 27;

pub(crate) fn employees() -> Vec<Derivation> {
    let path = TreePath {
        target: "Employee".to_owned(),
        parent: "Employee".to_owned(),
        link: Link::of(&[("EmployeeId", "ManagerId"), ("OrgId", "OrgId")]),
        name: "EmployeeId".to_owned(),
        attribute: "Path".to_owned(),
        depth_max: EMPLOYEE_DEPTH_MAX,
        found: found("Employee", Some("GSI2"), &[("ManagerId", "EmployeeId")]),
    };
    let chart = Mirror {
        source: "Employee".to_owned(),
        target: "OrgChart".to_owned(),
        link: Link::of(&[("OrgId", "OrgId"), ("Path", "Path")]),
        except: Vec::new(),
    };
    vec![Derivation::new("D-21", "employee-path", path), Derivation::new("D-21", "org-chart", chart)]
}
