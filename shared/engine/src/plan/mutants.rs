//! Breaks plans on purpose, for the tests that show what each protocol step prevents.
//!
//! Only the feature `mutants` compiles this file, and only tests enable that feature: no deployed function and no
//! `ripple` that a user builds can omit a step.

use derive::{
    change::{Change, Images},
    effect::Effect,
    plan::{Planned, plan},
};
use keys::{
    counter::{SHOWN, SPREAD},
    item::Item,
};
use serde_dynamo::AttributeValue;
use store::Store;

use crate::{context::Context, protocol::ProtocolStep};

/// Removes the effects of an omitted step from a plan.
pub(super) fn leave_out<S: Store>(context: &Context<S>, planned: &mut Planned, change: &Change) {
    let plan_of = |images: Images| {
        plan(&context.schema, &context.catalogue, &context.families, &Change { images, ..change.clone() }).effects
    };
    let is_look = |effect: &Effect| matches!(effect, Effect::Look(_));
    if !context.takes(ProtocolStep::OwnRequest) {
        planned.effects.retain(|(_, effect)| !matches!(effect, Effect::Look(request) if request.item == change.key));
    }
    let has_spread = |item: &Item| item.contains_key(SPREAD) && item.get(SHOWN) == Some(&AttributeValue::Bool(true));
    if !context.takes(ProtocolStep::HomeRequests) && change.new_image().is_some_and(has_spread) {
        planned.effects.retain(|(_, effect)| !is_look(effect));
    }
    if !context.takes(ProtocolStep::Vacated) {
        planned.effects.retain(|(_, effect)| !matches!(effect, Effect::Vacated(_)));
    }
    if !context.takes(ProtocolStep::WayThere) && matches!(change.images, Images::Inserted(_)) {
        planned.effects.retain(|(_, effect)| !matches!(effect, Effect::Look(request) if request.item != change.key));
    }
    if let (false, Images::Modified { old, new }) = (context.takes(ProtocolStep::LookupKey), &change.images) {
        let blind = plan_of(Images::Modified { old: with_index_keys_of(context, old, new), new: new.clone() });
        planned.effects.retain(|effect| blind.contains(effect) || !is_look(&effect.1));
    }
    if let (false, Some(new)) = (context.takes(ProtocolStep::BothImages), change.new_image()) {
        let blind = plan_of(Images::Inserted(new.clone()));
        planned.effects.retain(|effect| blind.contains(effect) || !is_look(&effect.1));
    }
}

/// An image with the index keys of another image.
fn with_index_keys_of<S: Store>(context: &Context<S>, image: &Item, other: &Item) -> Item {
    let mut image = image.clone();
    for name in context.schema.layout.indexes.iter().flat_map(|index| [&index.pk, &index.sk]) {
        match other.get(name) {
            Some(value) => drop(image.insert(name.clone(), value.clone())),
            None => drop(image.remove(name)),
        }
    }
    image
}
