//! A second oracle: the shipped table recounted by hand-written loops.
//!
//! It shares no code with the product, not even keys and numbers, so a fault in a kind, a link, a predicate or a sum
//! cannot hide in it. The names of entities, attributes and derivations are those of the shipped table, row by row. It
//! reads the items at the end, and for what is history every change. Each section is one family of derivations: a loop
//! over the sources, what they derive, and the comparison with what is stored; `changes` has those that need the changes.
//!
//! What the product's pages say of values that cannot be read holds here too: an item in which the deciding value has
//! another type is absent, and a missing amount adds 0. Both are counted in [`Recount`] and printed.

pub(crate) mod changes;
pub(crate) mod table;
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use table::{Address, ONE, Plain, PlainItem, PlainTable, Row, counter_of, escaped, home, segment};

pub(crate) struct PlainChange {
    pub(crate) at: Address,
    pub(crate) old: Option<PlainItem>,
    pub(crate) new: Option<PlainItem>,
    /// Did the service write it?
    pub(crate) is_ours: bool,
    /// Did the functions that look never get its record?
    pub(crate) is_lost: bool,
}

/// A derived value that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) derivation: &'static str,
    pub(crate) at: Address,
    pub(crate) stored: String,
    pub(crate) derived: String,
}

/// What the oracle found and what it left out.
#[derive(Debug, Default)]
pub(crate) struct Recount {
    pub(crate) differences: Vec<Difference>,
    /// Values that were compared.
    pub(crate) n_compared: usize,
    /// Items that do not count, because a value that decides cannot be read.
    pub(crate) n_unreadable: usize,
    /// Readings whose value changed or went after it had counted.
    pub(crate) n_late: usize,
    /// Items that may outlive their owner: a cascade could not know that they belong to it.
    pub(crate) n_not_found: usize,
}

impl Recount {
    #[expect(clippy::needless_pass_by_value, reason = "the loops make both values for this call")]
    fn compare<T: fmt::Debug + PartialEq>(&mut self, derivation: &'static str, at: &Address, stored: T, derived: T) {
        self.n_compared += 1;
        if stored != derived {
            let (stored, derived) = (format!("{stored:?}"), format!("{derived:?}"));
            self.differences.push(Difference { derivation, at: at.clone(), stored, derived });
        }
    }
}

pub(crate) fn recount(table: &PlainTable, changes: &[PlainChange]) -> Recount {
    let mut recount = Recount::default();
    let counted = counted(table, &mut recount);
    compare_counts(table, &counted, &mut recount);
    compare_best_sellers(table, &counted, &mut recount);
    compare_mirrors(table, &mut recount);
    compare_copies(table, &mut recount);
    compare_latest(table, &mut recount);
    compare_paths(table, &mut recount);
    changes::compare_histories(table, changes, &mut recount);
    changes::compare_cascades(table, changes, &mut recount);
    recount
}

// ---- D-02, D-03, D-05 to D-07, D-13, D-16, D-19 and D-22 to D-24: counts, sums and their displays ----

/// How many, and their sum in millionths, by target and derivation.
type Counted = BTreeMap<(Address, &'static str), (i128, i128)>;

/// Derivation of the counter, entity, attribute that shows it, and whether it shows the sum.
const DISPLAYS: [(&str, &str, &str, &str, bool); 16] = [
    ("follower-count", "follower-count-display", "User", "FollowerCount", false),
    ("following-count", "following-count-display", "User", "FollowingCount", false),
    ("post-count", "post-count-display", "User", "PostCount", false),
    ("comment-count", "comment-count-display", "PostDetail", "CommentCount", false),
    ("like-count", "like-count-display", "PostDetail", "LikeCount", false),
    ("member-count", "member-count-display", "Group", "MemberCount", false),
    ("team-count", "team-count-display", "Organization", "TeamCount", false),
    ("org-member-count", "org-member-count-display", "Organization", "MemberCount", false),
    ("employee-count", "employee-count-display", "Organization", "EmployeeCount", false),
    ("folder-totals", "folder-totals-count-display", "Folder", "FileCount", false),
    ("folder-totals", "folder-totals-sum-display", "Folder", "TotalBytes", true),
    ("product-rating", "product-rating-count-display", "Product", "ReviewCount", false),
    ("product-rating", "product-rating-sum-display", "Product", "RatingSum", true),
    ("order-totals", "order-totals-count-display", "User", "OrderCount", false),
    ("order-totals", "order-totals-sum-display", "User", "LifetimeValue", true),
    ("units-sold", "units-sold-display", "Product", "UnitsSold", true),
];

/// Entity whose every item counts, what it counts for, and the derivation.
const COUNTED: [(&str, (&str, &str), &str); 8] = [
    ("Follow", ("USER", "FolloweeId"), "follower-count"),
    ("Follow", ("USER", "FollowerId"), "following-count"),
    ("Comment", ("POST", "PostId"), "comment-count"),
    ("Like", ("POST", "PostId"), "like-count"),
    ("Membership", ("GROUP", "GroupId"), "member-count"),
    ("Team", ("ORG", "OrgId"), "team-count"),
    ("Member", ("ORG", "OrgId"), "org-member-count"),
    ("Employee", ("ORG", "OrgId"), "employee-count"),
];

fn counted(table: &PlainTable, recount: &mut Recount) -> Counted {
    let mut counted = Counted::new();
    let mut add = |target: Address, derivation: &'static str, amount: i128| {
        let (count, sum) = counted.entry((target, derivation)).or_default();
        *count += 1;
        *sum += amount;
    };
    for (entity, (of, name), derivation) in COUNTED {
        for row in table.each(entity) {
            add(home(of, row.id(name)), derivation, 0);
        }
    }
    for post in table.each("Post") {
        if is_text(&post, "Status", "published") {
            add(home("USER", post.id("AuthorId")), "post-count", 0);
        }
    }
    for file in table.each("File") {
        match amount(&file, "SizeBytes") {
            Some(size) => add(home("FOLDER", file.id("FolderId")), "folder-totals", size),
            None => recount.n_unreadable += 1,
        }
    }
    for review in table.each("Review") {
        match amount(&review, "Rating") {
            Some(rating) => add(home("PRODUCT", review.id("ProductId")), "product-rating", rating),
            None => recount.n_unreadable += 1,
        }
    }
    for order in table.each("Order") {
        match amount(&order, "Total") {
            _ if is_text(&order, "Status", "cancelled") => {}
            Some(total) => add(home("USER", order.id("UserId")), "order-totals", total),
            None => recount.n_unreadable += 1,
        }
    }
    for line in table.each("OrderItem") {
        match (line.item.get("Cancelled"), amount(&line, "Quantity")) {
            (Some(Plain::Bool(true)), _) => {}
            (_, Some(quantity)) => add(home("PRODUCT", line.id("ProductId")), "units-sold", quantity),
            (_, None) => recount.n_unreadable += 1,
        }
    }
    counted
}

fn is_text(row: &Row<'_>, name: &str, text: &str) -> bool {
    matches!(row.item.get(name), Some(Plain::Text(stored)) if stored == text)
}

/// The amount of an item: 0 when it has none, and `None` when it is no number.
fn amount(row: &Row<'_>, name: &str) -> Option<i128> {
    match row.item.get(name) {
        None => Some(0),
        Some(Plain::Number(number)) => Some(*number),
        Some(_) => None,
    }
}

/// Compares counters and displays with what was counted.
fn compare_counts(table: &PlainTable, counted: &Counted, recount: &mut Recount) {
    let mut stored: BTreeMap<(Address, &str), (i128, i128)> = BTreeMap::new();
    for (at, item) in counters(table) {
        let Some((target, derivation)) = counter_of(at).filter(|(_, name)| *name != "view-count") else { continue };
        let (count, sum) = stored.entry((target, derivation)).or_default();
        *count += number(item.get("Value")) / ONE;
        *sum += number(item.get("Sum"));
    }
    for (target, derivation) in stored.keys().filter(|(_, derivation)| !DISPLAYS.iter().any(|it| it.0 == *derivation)) {
        recount.compare("unknown", target, *derivation, "");
    }
    let derivations: BTreeSet<&'static str> = DISPLAYS.iter().map(|(derivation, ..)| *derivation).collect();
    for derivation in derivations {
        let counters = stored.keys().chain(counted.keys()).filter(|(_, name)| *name == derivation);
        let targets: BTreeSet<&Address> = counters.map(|(target, _)| target).collect();
        for target in targets {
            let at = (target.clone(), derivation);
            let [is, should_be] = [stored.get(&at), counted.get(&at)].map(|it| it.copied().unwrap_or_default());
            recount.compare(derivation, target, is, should_be);
        }
    }
    let standing = standing(table);
    for (derivation, display, entity, attribute, is_sum) in DISPLAYS {
        for row in table.each(entity) {
            let at = (row.at.clone(), derivation);
            let (count, sum) = counted.get(&at).copied().unwrap_or_default();
            let derived = if is_sum { sum } else { count * ONE };
            compare_display(display, &row, attribute, (derived, standing.contains(&at)), recount);
        }
    }
}

/// Compares a display. When nothing counts it is 0, or absent where no counter stands either.
fn compare_display(
    display: &'static str,
    row: &Row<'_>,
    attribute: &str,
    (derived, stands): (i128, bool),
    recount: &mut Recount,
) {
    let stored = row.item.get(attribute).cloned();
    if stored.is_none() && derived == 0 && !stands {
        return;
    }
    recount.compare(display, row.at, stored, Some(Plain::Number(derived)));
}

/// Targets and derivations for which a counter stands that can be read.
fn standing(table: &PlainTable) -> BTreeSet<(Address, &str)> {
    let is_number = |item: &PlainItem, name: &str| matches!(item.get(name), Some(Plain::Number(_)));
    let read = counters(table).filter(|(_, item)| is_number(item, "Value") || is_number(item, "Sum"));
    read.filter_map(|(at, _)| counter_of(at)).collect()
}

/// The items that are counters.
fn counters(table: &PlainTable) -> impl Iterator<Item = (&Address, &PlainItem)> {
    table.0.iter().filter(|(_, item)| item.get("EntityType") == Some(&Plain::Text("Counter".to_owned())))
}

/// The number that a value is, else 0.
fn number(value: Option<&Plain>) -> i128 {
    match value {
        Some(Plain::Number(number)) => *number,
        _ => 0,
    }
}

// ---- D-25: the key of a product in the list of best sellers of its category ----

/// The largest number of units that the key can hold.
const UNITS_MAX: i128 = 999_999_999_999;

fn compare_best_sellers(table: &PlainTable, counted: &Counted, recount: &mut Recount) {
    for product in table.each("Product") {
        let (_, sold) = counted.get(&(product.at.clone(), "units-sold")).copied().unwrap_or_default();
        // Absent, zero, negative, fractional and too large ones give no key.
        let is_listed = sold > 0 && sold % ONE == 0 && sold / ONE <= UNITS_MAX;
        let category = product.text("Category").filter(|_| is_listed);
        let key = category.map(|category| {
            let units = format!("{:012}", UNITS_MAX - sold / ONE);
            [format!("BESTSELLERS#{}", escaped(category)), format!("{units}#{}", escaped(product.id("ProductId")))]
        });
        let stored = ["GSI2PK", "GSI2SK"].map(|name| product.item.get(name).cloned());
        let derived = key.map_or([None, None], |key| key.map(|text| Some(Plain::Text(text))));
        recount.compare("best-sellers", product.at, stored, derived);
    }
}

// ---- D-01, D-04, D-12, D-18, D-21 (the chart) and D-30: mirrors ----

/// What is never mirrored: keys, the type, the time to live.
const NEVER: [&str; 8] = ["PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK", "EntityType", "ExpiresAt"];

/// Derivation, entity of the mirror, and the mirror's attributes of other derivations.
const MIRRORS: [(&str, &str, &[&str]); 6] = [
    ("follower-mirror", "Follower", &["FollowerName"]),
    ("post-detail", "PostDetail", &OF_A_POST),
    ("group-member", "GroupMember", &["UserName"]),
    ("file-detail", "FileDetail", &["Path"]),
    ("org-chart", "OrgChart", &[]),
    ("order-detail", "OrderDetail", &[]),
];

/// What other derivations write into the detail of a post.
const OF_A_POST: [&str; 8] = [
    "AuthorName",
    "AuthorAvatar",
    "CommentCount",
    "LikeCount",
    "ViewCount",
    "LastCommentBy",
    "LastCommentAt",
    "FirstCommentAt",
];

fn compare_mirrors(table: &PlainTable, recount: &mut Recount) {
    for (derivation, entity, others) in MIRRORS {
        let derived = mirrors(table, entity);
        // An item of the application that has the key of a mirror stays, and the mirror waits.
        let is_taken = |at: &Address| table.0.get(at).is_some_and(|item| item.get("EntityType") != Some(&text(entity)));
        for (at, mirror) in derived.iter().filter(|(at, _)| !is_taken(at)) {
            let stored = table.0.get(at).map(|item| without(item, others));
            recount.compare(derivation, at, stored, Some(mirror.clone()));
        }
        for left in table.each(entity).iter().filter(|row| !derived.contains_key(row.at)) {
            recount.compare(derivation, left.at, Some(without(left.item, others)), None);
        }
    }
}

fn mirrors(table: &PlainTable, entity: &str) -> BTreeMap<Address, PlainItem> {
    let mut mirrors = Mirrors { entity: entity.to_owned(), made: BTreeMap::new() };
    match entity {
        "Follower" => {
            for follow in table.each("Follow") {
                let sk = format!("FOLLOWER#{}", escaped(follow.id("FollowerId")));
                let at = (format!("USER#{}", escaped(follow.id("FolloweeId"))), sk);
                mirrors.add(at, &follow, &["FolloweeName", "FollowerName"], &[]);
            }
        }
        "PostDetail" => {
            let left_out = [&["Content", "Claims"][..], &OF_A_POST].concat();
            for post in table.each("Post") {
                let at = home("POST", post.id("PostId"));
                mirrors.add(at.clone(), &post, &left_out, &["AuthorId", "CreatedAt"]);
                mirrors.claim(&at, post.at);
                if post.item.get("Status") == Some(&text("published")) {
                    let id = post.id("PostId");
                    let mirror = mirrors.made.get_mut(&at).unwrap();
                    mirror.insert("GSI2PK".to_owned(), text(&format!("POSTS#{:02}", crc32(id) % 8)));
                    let sk = format!("{}#{}", escaped(post.id("CreatedAt")), escaped(id));
                    mirror.insert("GSI2SK".to_owned(), text(&sk));
                }
            }
        }
        "GroupMember" => {
            for membership in table.each("Membership") {
                let sk = format!("USER#{}", escaped(membership.id("UserId")));
                let at = (format!("GROUP#{}", escaped(membership.id("GroupId"))), sk);
                mirrors.add(at, &membership, &["GroupName", "UserName"], &[]);
            }
        }
        "FileDetail" => {
            for file in table.each("File") {
                let at = home("FILE", file.id("FileId"));
                mirrors.add(at.clone(), &file, &["Claims", "Path"], &["FolderId", "UploadedAt"]);
                mirrors.claim(&at, file.at);
            }
        }
        "OrgChart" => {
            for employee in table.each("Employee") {
                let Some(path) = employee_path(table, employee.at) else { continue };
                let at = (employee.at.0.clone(), format!("EMP#{path}"));
                mirrors.add(at.clone(), &employee, &["Claims", "Path"], &["EmployeeId"]);
                mirrors.claim(&at, employee.at);
            }
        }
        _ => {
            for order in table.each("Order") {
                let at = home("ORDER", order.id("OrderId"));
                mirrors.add(at.clone(), &order, &["Claims"], &["UserId", "PlacedAt"]);
                mirrors.claim(&at, order.at);
            }
        }
    }
    mirrors.made
}

struct Mirrors {
    entity: String,
    made: BTreeMap<Address, PlainItem>,
}

impl Mirrors {
    /// The mirror of a source. Of several with one key the last one wins, and the claims of all stay.
    fn add(&mut self, at: Address, source: &Row<'_>, left_out: &[&str], from_key: &[&str]) {
        let mut mirror = without(&without(source.item, &NEVER), left_out);
        for name in from_key {
            mirror.insert((*name).to_owned(), text(source.id(name)));
        }
        mirror.insert("PK".to_owned(), text(&at.0));
        mirror.insert("SK".to_owned(), text(&at.1));
        mirror.insert("EntityType".to_owned(), text(&self.entity));
        let claims = self.made.get(&at).and_then(|before| before.get("Claims").cloned());
        mirror.extend(claims.map(|claims| ("Claims".to_owned(), claims)));
        self.made.insert(at, mirror);
    }

    /// The mirror lists the keys of all its sources.
    fn claim(&mut self, at: &Address, source: &Address) {
        let key = [("PK", &source.0), ("SK", &source.1)].map(|(name, part)| (name.to_owned(), text(part)));
        let mirror = self.made.get_mut(at).unwrap();
        let claims = mirror.entry("Claims".to_owned()).or_insert(Plain::List(Vec::new()));
        let Plain::List(claims) = claims else { unreachable!("the source's own is left out") };
        claims.push(Plain::Map(BTreeMap::from(key)));
    }
}

/// An item without these attributes, and without the revisions that stand beside counts.
fn without(item: &PlainItem, names: &[&str]) -> PlainItem {
    let kept = item.iter().filter(|(name, _)| !names.contains(&name.as_str()) && !name.ends_with(":rev"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn text(text: &str) -> Plain {
    Plain::Text(text.to_owned())
}

fn crc32(text: &str) -> u32 {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

// ---- D-09 to D-11, D-14, D-15, D-17 and D-27: copies of names and avatars ----

/// Derivation; the item that holds the copy and the field that names the source; the source; what is copied to what.
type CopyRule =
    (&'static str, (&'static str, &'static str), (&'static str, &'static str), &'static [(&'static str, &'static str)]);

const COPIES: [CopyRule; 9] = [
    ("comment-author", ("Comment", "UserId"), ("User", "USER"), &[("Name", "UserName"), ("Avatar", "UserAvatar")]),
    (
        "post-author",
        ("PostDetail", "AuthorId"),
        ("User", "USER"),
        &[("Name", "AuthorName"), ("Avatar", "AuthorAvatar")],
    ),
    ("followee-name", ("Follow", "FolloweeId"), ("User", "USER"), &[("Name", "FolloweeName")]),
    ("follower-name", ("Follower", "FollowerId"), ("User", "USER"), &[("Name", "FollowerName")]),
    ("group-name", ("Membership", "GroupId"), ("Group", "GROUP"), &[("Name", "GroupName")]),
    ("group-user-name", ("GroupMember", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
    ("member-user-name", ("Member", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
    ("member-org-name", ("Member", "OrgId"), ("Organization", "ORG"), &[("Name", "OrgName")]),
    ("review-author", ("Review", "UserId"), ("User", "USER"), &[("Name", "UserName")]),
];

/// A copy is the source's value, whatever it is, and absent when the source is.
fn compare_copies(table: &PlainTable, recount: &mut Recount) {
    for (derivation, (holder, names_it), (source, prefix), attributes) in COPIES {
        for row in table.each(holder) {
            let named = row.text(names_it);
            recount.n_unreadable += usize::from(named.is_none() && row.item.contains_key(names_it));
            let source = named.and_then(|id| table.get(source, &home(prefix, id)));
            for (from, to) in attributes {
                let derived = source.as_ref().and_then(|source| source.item.get(*from));
                recount.compare(derivation, row.at, row.item.get(*to), derived);
            }
        }
    }
}

// ---- S-01 to S-03: the last and the first comment of a post, and whether an organization has teams ----

fn compare_latest(table: &PlainTable, recount: &mut Recount) {
    let (comments, teams) = (table.each("Comment"), table.each("Team"));
    for post in table.each("PostDetail") {
        let of_it = || comments.iter().filter(|comment| comment.at.0 == post.at.0);
        let at = |name: &str| Plain::Text(name.to_owned());
        let (last, first) = (of_it().max_by_key(|comment| &comment.at.1), of_it().min_by_key(|comment| &comment.at.1));
        let last_by = last.and_then(|comment| comment.item.get("UserId"));
        recount.compare("last-comment", post.at, post.item.get("LastCommentBy"), last_by);
        for (derivation, attribute, comment) in
            [("last-comment", "LastCommentAt", last), ("first-comment", "FirstCommentAt", first)]
        {
            let derived = comment.map(|comment| at(comment.id("CreatedAt")));
            recount.compare(derivation, post.at, post.item.get(attribute), derived.as_ref());
        }
    }
    for organization in table.each("Organization") {
        let has_teams = teams.iter().any(|team| team.id("OrgId") == organization.id("OrgId"));
        let derived = has_teams.then_some(Plain::Bool(true));
        recount.compare("team-exists", organization.at, organization.item.get("HasTeams"), derived.as_ref());
    }
}

// ---- D-20 and D-21: paths of folders, files and employees ----

/// Most levels of folders and of employees.
const FOLDERS_MAX: usize = 64;
const EMPLOYEES_MAX: usize = 27;

fn compare_paths(table: &PlainTable, recount: &mut Recount) {
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
fn employee_path(table: &PlainTable, at: &Address) -> Option<String> {
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
