//! A sentence for each derivation: what it does, in the words of the manifest.
//!
//! A declaration may be valid and mean something else than was meant. The sentence names the items that take part, where
//! the value goes, and how it gets there.

use derive::{
    catalogue::Catalogue,
    declaration::Link,
    derivation::Derivation,
    expression::Input,
    kind::{Refresh, Shape},
    outline::{FromEntries, Outline},
    part::PartOf,
    schema::Schema,
};

/// The sentences of the declared derivations of a manifest, each with its name. What shows a count, and the items that it
/// creates, are in the sentence of the count; entries are in the sentence of what reads them.
#[must_use]
pub fn sentences(schema: &Schema, catalogue: &Catalogue) -> Vec<(String, String)> {
    catalogue
        .declared()
        // The mark of a value without escapes is not written in a manifest.
        .map(|derivation| (derivation.label().to_owned(), sentence(schema, catalogue, derivation).replace("!}", "}")))
        .collect()
}

fn sentence(schema: &Schema, catalogue: &Catalogue, derivation: &Derivation) -> String {
    let outline = derivation.kind.outline(schema);
    match derivation.kind.shape() {
        Shape::Count(count) => {
            let mut text = format!("counts the {} items", count.source);
            extend(&mut text, count.each.as_ref().map(|list| format!("once for each different member of {list}")));
            extend(&mut text, count.sum.as_ref().map(|sum| format!("and adds up {}", quoted(sum))));
            extend(&mut text, count.condition.words());
            extend(&mut text, Some(format!("into {}", named(&count.target, &count.link))));
            if count.history {
                text.push_str("; only arrivals count");
            }
            if count.expired_stays {
                text.push_str("; an item that expires stays counted");
            }
            text + &shown(schema, catalogue, &derivation.name)
        }
        Shape::Rollup(rollup) => {
            let grains: Vec<String> = rollup.grains.iter().map(|grain| grain.name().to_lowercase()).collect();
            let mut text = format!("adds up {} of the {} items", quoted(&rollup.value), rollup.source);
            extend(&mut text, rollup.condition.words());
            let (time, into) = (quoted(&rollup.time), named(&rollup.form.entity, &rollup.link));
            extend(&mut text, Some(format!("by {} of {time}, into {into}", listed(&grains))));
            text + "; only arrivals count"
        }
        Shape::Mirror(mirror) => {
            let each = mirror.each.as_ref().map_or_else(String::new, |list| format!("member of {list} of each "));
            let mut text = format!("puts one {} for each {each}{} item", mirror.target, mirror.source);
            extend(&mut text, mirror.condition.words());
            extend(&mut text, outline.into.map(|into| format!("under {into}")));
            if !mirror.except.is_empty() {
                extend(&mut text, Some(format!("without {}", listed(&mirror.except))));
            }
            text
        }
        Shape::Cascade(cascade) => {
            format!("after the removal of one {}: {}", cascade.owner, outline.touches.join("; "))
        }
        Shape::Attributes(refresh) => match FromEntries::of(schema, catalogue, derivation) {
            Some(entries) => from_entries(&entries, refresh.target()),
            None => written(refresh, &outline),
        },
    }
}

/// What a derivation takes from the entries of a collection.
fn from_entries(of: &FromEntries, target: &str) -> String {
    let FromEntries { source, into, order, condition, carried, extreme, list } = of;
    let condition = if condition.is_empty() { String::new() } else { format!(" {condition}") };
    let text = match (extreme, list) {
        (Some(attribute), _) => format!("shows in {target}.{attribute} the {order} of its {source} items{condition}"),
        (None, Some((n, attribute))) => {
            format!(
                "keeps in {target}.{attribute} a list of {carried} of its {n} {source} items{condition} with the {order}"
            )
        }
        (None, None) => format!("copies {carried} into each {target}, of its {source}{condition} with the {order}"),
    };
    format!("{text}; each {source} that leads to {into} has an entry beside its {target}")
}

/// What a derivation writes into attributes.
fn written(refresh: &dyn Refresh, outline: &Outline) -> String {
    let source = outline.from.first().map_or("", String::as_str);
    let conditions = outline.terms.iter().filter(|term| term.starts_with("where ")).map(String::as_str);
    let conditions: Vec<&str> = conditions.collect();
    let mut text = match &outline.says {
        Some(says) => says.clone(),
        None => copied(refresh, outline),
    };
    extend(&mut text, (!conditions.is_empty()).then(|| conditions.join(" ")));
    for find in &outline.finds {
        let index = find.query.index.as_deref();
        let place = index.map_or_else(|| "of the table".to_owned(), |index| format!("of the index {index}"));
        let through = if find.via == find.target { String::new() } else { format!(", through each {}", find.via) };
        text.extend(["; a changed ", source, " finds them by a query ", &place, " for ", &find.query.pk, &through]);
    }
    text
}

/// What a copy writes, and which item it copies from.
fn copied(refresh: &dyn Refresh, outline: &Outline) -> String {
    let (source, target) = (outline.from.first().map_or("", String::as_str), refresh.target());
    let pair = |(from, to): &(Input, String)| match from.name() {
        Some(name) => format!("{source}.{name} into {target}.{to}"),
        None => format!("{} of the {source} into {target}.{to}", quoted(from)),
    };
    let pairs: Vec<String> = refresh.copied().iter().map(pair).collect();
    format!("copies {}, for {}", listed(&pairs), named_by(source, &outline.named_by))
}

/// Where a count is shown, and the items that it creates.
fn shown(schema: &Schema, catalogue: &Catalogue, count: &str) -> String {
    let mut text = String::new();
    for derivation in catalogue.derivations() {
        let Some(refresh) = derivation.kind.refresh().filter(|it| it.reads_counts().contains(&count)) else { continue };
        if refresh.makes_item() {
            text.push_str("; creates each while anything is counted for it");
            continue;
        }
        let outline = derivation.kind.outline(schema);
        let part = match outline.terms.first().and_then(|term| term.split(' ').next()) {
            Some("Sum") => "the sum",
            Some("Average") => "the average",
            Some("Exists") => "whether anything counts",
            _ => "the count",
        };
        for written in derivation.kind.reach(schema).unwrap_or_default().writes {
            if let PartOf::Attribute(attribute) = written.of {
                text.extend(["; shows ", part, " as ", &written.entity, ".", &attribute]);
            }
        }
    }
    text
}

/// The item that a link leads to, such as: the User that `buyerId` names.
fn named(target: &str, link: &Link) -> String {
    named_by(target, &link.0.iter().map(|(_, input)| input.text().to_owned()).collect::<Vec<_>>())
}

fn named_by(target: &str, fields: &[String]) -> String {
    let mut from: Vec<String> = Vec::new();
    for field in fields {
        let field = format!("`{field}`");
        if !from.contains(&field) {
            from.push(field);
        }
    }
    match from.as_slice() {
        [] => format!("the one {target}"),
        [one] => format!("the {target} that {one} names"),
        several => format!("the {target} that {} name", listed(several)),
    }
}

fn quoted(input: &Input) -> String {
    format!("`{input}`")
}

fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

fn extend(text: &mut String, more: Option<String>) {
    if let Some(more) = more {
        text.push(' ');
        text.push_str(&more);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_reads_entries_names_the_items_that_have_them() {
        let text = include_str!("../../../tests/cases/29-offers-of-a-product/ripple.toml");
        let (schema, catalogue) = manifest::load(text).unwrap();
        let all: Vec<String> =
            super::sentences(&schema, &catalogue).into_iter().map(|(name, text)| format!("{name}: {text}")).collect();
        expect_test::expect![[r#"
            lowest: shows in Product.lowestPrice the least price of its Offer items where active = true; each Offer that leads to Product#{productId} / - has an entry beside its Product
            highest: shows in Product.highestPrice the greatest price of its Offer items; each Offer that leads to Product#{productId} / - has an entry beside its Product
            newest: keeps in Product.newest a list of id as offer, price of its 3 Offer items where active = true with the greatest createdAt; each Offer that leads to Product#{productId} / - has an entry beside its Product
            newest-seller: copies upper(seller) as newestSeller into each Product, of its Offer where active = true with the greatest createdAt; each Offer that leads to Product#{productId} / - has an entry beside its Product"#]].assert_eq(&all.join("\n"));
    }

    #[test]
    fn each_derivation_of_the_shipped_table_has_a_sentence() {
        let schema = catalogue::schema();
        let catalogue = catalogue::catalogue(&schema).unwrap();
        let all: Vec<String> =
            super::sentences(&schema, &catalogue).iter().map(|(name, text)| format!("{name}: {text}")).collect();
        expect_test::expect![[r#"
            follower-mirror: puts one Follower for each Follow item under USER#{FolloweeId} / FOLLOWER#{FollowerId}
            follower-count: counts the Follow items into the User that `FolloweeId` names; shows the count as User.FollowerCount
            following-count: counts the Follow items into the User that `FollowerId` names; shows the count as User.FollowingCount
            followee-name: copies User.Name into Follow.FolloweeName, for the User that `FolloweeId` names; a changed User finds them by a query of the table for USER#{UserId}, through each Follower
            follower-name: copies User.Name into Follower.FollowerName, for the User that `FollowerId` names; a changed User finds them by a query of the table for USER#{UserId}, through each Follow
            post-detail: puts one PostDetail for each Post item under POST#{PostId} / METADATA without Content
            post-count: counts the Post items where Status = 'published' into the User that `AuthorId` names; shows the count as User.PostCount
            comment-count: counts the Comment items into the PostDetail that `PostId` names; shows the count as PostDetail.CommentCount
            like-count: counts the Like items into the PostDetail that `PostId` names; shows the count as PostDetail.LikeCount
            view-count: counts the View items into the PostDetail that `PostId` names; only arrivals count; shows the count as PostDetail.ViewCount
            comment-author: copies User.Name into Comment.UserName and User.Avatar into Comment.UserAvatar, for the User that `UserId` names; a changed User finds them by a query of the index GSI1 for USER#{UserId}
            post-author: copies User.Name into PostDetail.AuthorName and User.Avatar into PostDetail.AuthorAvatar, for the User that `AuthorId` names; a changed User finds them by a query of the table for USER#{UserId}, through each Post
            group-member: puts one GroupMember for each Membership item under GROUP#{GroupId} / USER#{UserId}
            member-count: counts the Membership items into the Group that `GroupId` names; shows the count as Group.MemberCount
            group-name: copies Group.Name into Membership.GroupName, for the Group that `GroupId` names; a changed Group finds them by a query of the table for GROUP#{GroupId}, through each GroupMember
            group-user-name: copies User.Name into GroupMember.UserName, for the User that `UserId` names; a changed User finds them by a query of the table for USER#{UserId}, through each Membership
            team-count: counts the Team items into the Organization that `OrgId` names; shows the count as Organization.TeamCount
            org-member-count: counts the Member items into the Organization that `OrgId` names; shows the count as Organization.MemberCount
            employee-count: counts the Employee items into the Organization that `OrgId` names; shows the count as Organization.EmployeeCount
            member-user-name: copies User.Name into Member.UserName, for the User that `UserId` names; a changed User finds them by a query of the index GSI1 for USER#{UserId}
            member-org-name: copies Organization.Name into Member.OrgName, for the Organization that `OrgId` names; a changed Organization finds them by a query of the table for ORG#{OrgId}
            file-detail: puts one FileDetail for each File item under FILE#{FileId} / METADATA
            folder-path: keeps in each Folder its path: Name below the Path of its Folder; a changed Folder finds them by a query of the index GSI1 for FOLDER#{FolderId}
            file-path: keeps in each FileDetail its path: Name below the Path of its Folder; a changed FileDetail finds them by a query of the table for FOLDER#{FolderId}, through each File
            employee-path: keeps in each Employee its path: EmployeeId below the Path of its Employee; a changed Employee finds them by a query of the index GSI2 for MANAGER#{EmployeeId}
            org-chart: puts one OrgChart for each Employee item under ORG#{OrgId} / EMP#{Path/}
            review-author: copies User.Name into Review.UserName, for the User that `UserId` names; a changed User finds them by a query of the index GSI1 for USER#{UserId}
            order-detail: puts one OrderDetail for each Order item under ORDER#{OrderId} / METADATA
            folder-totals: counts the File items and adds up `SizeBytes` into the Folder that `FolderId` names; shows the count as Folder.FileCount; shows the sum as Folder.TotalBytes
            product-rating: counts the Review items and adds up `Rating` into the Product that `ProductId` names; shows the count as Product.ReviewCount; shows the sum as Product.RatingSum
            order-totals: counts the Order items and adds up `Total` where Status <> 'cancelled' into the User that `UserId` names; shows the count as User.OrderCount; shows the sum as User.LifetimeValue
            units-sold: counts the OrderItem items and adds up `Quantity` where NOT Cancelled = true into the Product that `ProductId` names; shows the sum as Product.UnitsSold
            best-sellers: puts each Product with UnitsSold above zero into the index GSI2, under BESTSELLERS#{Category} / {MAX-UnitsSold:12}#{ProductId}
            readings-rollup: adds up `Value` of the Reading items by hour and day of `At`, into the Rollup that `SensorId` names; only arrivals count
            post-cascade: after the removal of one PostDetail: Comment deleted; Like deleted; Counter of view-count deleted
            user-cascade: after the removal of one User: Follow deleted; Follow deleted; Like deleted; View deleted; Membership deleted; Member deleted; Subscription deleted; CartItem deleted; EmailClaim, named by what was removed, deleted while its UserId is the owner's; Post Status set to archived"#]].assert_eq(&all.join("\n"));
    }
}
